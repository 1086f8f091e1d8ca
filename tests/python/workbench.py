"""A running `lookalike view`, for tests."""

import http.client
import json
import os
import signal
import subprocess
import urllib.parse
from contextlib import contextmanager

LOOKALIKE = os.environ["LOOKALIKE"]


class Workbench:
    """A process, and the calls to it."""

    def __init__(self, directory, *arguments, coder="Ann"):
        command = [LOOKALIKE, "view", str(directory), "--no-open", "--listen", "127.0.0.1:0", "--coder", coder]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError(self.process.communicate()[1])

    def raw(self, method, path, body=None, headers=None):
        """Status, headers and body."""
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path, code=200, **headers):
        status, _, body = self.raw("GET", path, headers=headers)
        assert status == code, (path, status, body[:500])
        return body.decode()

    def post(self, path, values, coder=None, code=200, headers=None):
        all_headers = {"X-Lookalike": "1", **(headers or {})}
        if coder:
            all_headers["Cookie"] = "lookalike-coder=" + urllib.parse.quote(coder)
        status, _, body = self.raw("POST", path, json.dumps(values), all_headers)
        assert status == code, (path, status, body[:500])
        return json.loads(body)

    def wait_for_texts(self):
        while "Texts are being read" in self.get("/clusters"):
            assert self.process.poll() is None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=30)


@contextmanager
def viewing(directory, *arguments, **options):
    bench = Workbench(directory, *arguments, **options)
    try:
        yield bench
    finally:
        if bench.process.poll() is None:
            bench.kill()
