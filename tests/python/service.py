"""A running `lookalike serve`, for tests."""

import http.client
import json
import os
import random
import signal
import subprocess
from contextlib import contextmanager

LOOKALIKE = os.environ["LOOKALIKE"]
WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("ran", "lith", "mor", "sek", "vant", "dul")]


def text(number, words=120):
    """Words that make a page like no other number's."""
    source = random.Random(number)
    return " ".join(source.choice(WORDS) + source.choice(WORDS) for _ in range(words))


class Service:
    """A process, and the calls to it."""

    def __init__(self, directory, *arguments, wrapper=(), environment=None, quiet=True):
        command = [*wrapper, LOOKALIKE, "serve", str(directory), "--listen", "127.0.0.1:0", *map(str, arguments)]
        if quiet:
            command.append("--no-access-log")
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        address = self.process.stdout.readline().strip()
        if not address:
            raise RuntimeError(self.process.communicate()[1])
        self.host = address.removeprefix("http://")
        # Nothing but /healthz is answered until the index is open; /readyz says when.
        while self.process.poll() is None:
            try:
                if self.call("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
        raise RuntimeError(self.process.communicate()[1])

    def connection(self, timeout=60):
        return http.client.HTTPConnection(self.host, timeout=timeout)

    def call(self, method, path, body=None, headers=None, connection=None):
        """Status and parsed body."""
        own = connection or self.connection()
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        try:
            own.request(method, path, body=body, headers=headers)
            answer = own.getresponse()
            data = answer.read()
        finally:
            if connection is None:
                own.close()
        self.headers = dict(answer.getheaders())
        is_json = "json" in (answer.getheader("Content-Type") or "") and "ndjson" not in answer.getheader("Content-Type")
        return answer.status, json.loads(data) if is_json and data else data

    def put(self, page, store="if_new", connection=None):
        status, answer = self.call("POST", f"/v1/pages?store={store}", page, connection=connection)
        assert status == 200, answer
        return answer

    def check(self, page, connection=None):
        return self.put(page, "never", connection)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self):
        """Ends it as it should be ended; gives what it said."""
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=60)[1]
        assert self.process.returncode == 0, said
        return said


@contextmanager
def service(directory, *arguments, **options):
    running = Service(directory, *arguments, **options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


def lookalike(*arguments):
    """Runs the command line."""
    return subprocess.run([LOOKALIKE, *map(str, arguments)], capture_output=True, text=True)


def problem(answer, status, kind):
    """Whether an answer is a problem document of this kind."""
    given, body = answer
    assert given == status, answer
    assert body["status"] == status and body["type"] == f"urn:lookalike:{kind}", body
    assert body["title"] and len(body["detail"]) > 3, body
    return body
