"""Who may use the service: tokens, browsers, TLS; and what the log says of it."""

import datetime
import hashlib
import http.client
import http.server
import json
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest
from service import LOOKALIKE, Service, lookalike, problem, service, text

# Seconds to wait for something: far more than it takes on a slow machine.
LONGEST_WAIT = 120
JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SECRETS = {name: f"{name}-0123456789abcdef" for name in ("boss", "news", "reader", "slow", "later")}


def until(is_so, what):
    deadline = time.monotonic() + LONGEST_WAIT
    while not is_so():
        assert time.monotonic() < deadline, f"it did not come: {what}"
        time.sleep(0.02)


def bearer(name):
    return {"Authorization": f"Bearer {SECRETS[name]}"}


def hashed(secret):
    printed = subprocess.run([LOOKALIKE, "serve", "--hash-token"], input=secret, capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    return printed.stdout.strip()


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(
        f"admin {hashed(SECRETS['boss'])} name=boss\n"
        f"write {hashed(SECRETS['news'])} news blogs name=news-crawler\n"
        f"read {SECRETS['reader']}\n"
        f"read {SECRETS['slow']} rate=2\n"
    )
    return path


def test_hashed_tokens(tmp_path):
    assert hashed("abcdefghijklmnop") == "sha256:" + hashlib.sha256(b"abcdefghijklmnop").hexdigest()
    refused = subprocess.run([LOOKALIKE, "serve", "--hash-token"], input="short", capture_output=True, text=True)
    assert refused.returncode == 2 and "16" in refused.stderr and "short" not in refused.stderr
    assert lookalike("serve").returncode == 2, "a directory is needed for everything else"


def test_rights_per_collection(tmp_path, tokens):
    with service(tmp_path / "seen", "--tokens", tokens) as running:
        page = json.dumps({"id": "a", "text": text(1)})
        for name in ("news", "blogs", "other"):
            problem(running.call("PUT", f"/v1/collections/{name}", "{}", {**JSON, **bearer("news")}), 403, "forbidden")
            assert running.call("PUT", f"/v1/collections/{name}", "{}", {**JSON, **bearer("boss")})[0] == 201
        for name, expected in (("news", 200), ("blogs", 200), ("other", 403), ("none", 403)):
            path = f"/v1/collections/{name}/pages?store=if_new"
            assert running.call("POST", path, page, {**JSON, **bearer("news")})[0] == expected, name
        # The paths without a name are those of `default`.
        problem(running.call("POST", "/v1/pages", page, {**JSON, **bearer("news")}), 403, "forbidden")
        problem(running.call("GET", "/v1/pages/a", headers=bearer("news")), 403, "forbidden")
        listed = lambda who: [one["name"] for one in running.call("GET", "/v1/collections", headers=bearer(who))[1]["collections"]]
        assert listed("news") == ["blogs", "news"] and listed("reader") == ["blogs", "default", "news", "other"]
        problem(running.call("GET", "/metrics", headers=bearer("news")), 403, "forbidden")
        assert running.call("GET", "/metrics", headers=bearer("reader"))[0] == 200
        problem(running.call("POST", "/v1/collections/news/backup", headers=bearer("news")), 403, "forbidden")
        problem(running.call("POST", "/v1/backup", headers=bearer("boss")), 409, "conflict")
        problem(running.call("DELETE", "/v1/collections/news/pages/a", headers=bearer("reader")), 403, "forbidden")
        assert running.call("DELETE", "/v1/collections/news/pages/a", headers=bearer("news"))[0] == 204
        # The hash of a secret is not the secret.
        problem(running.call("GET", "/v1/stats", headers={"Authorization": f"Bearer {hashed(SECRETS['boss'])}"}), 401, "unauthorized")


def test_a_token_has_a_rate(tmp_path, tokens):
    with service(tmp_path / "seen", "--tokens", tokens) as running:
        statuses = [running.call("GET", "/v1/stats", headers=bearer("slow"))[0] for _ in range(20)]
        assert statuses[:2] == [200, 200] and 429 in statuses
        problem(running.call("GET", "/v1/stats", headers=bearer("slow")), 429, "too-many-requests")
        assert running.headers["retry-after"] == "1"
        assert running.call("GET", "/v1/stats", headers=bearer("reader"))[0] == 200
        # Lines of batches are held back rather than refused.
        until(lambda: running.call("GET", "/v1/stats", headers=bearer("slow"))[0] == 200, "it may ask again")
        lines = "\n".join(json.dumps({"text": text(number)}) for number in range(4))
        call = lambda: running.call("POST", "/v1/pages/batch", lines, {**NDJSON, **bearer("slow")})
        until(lambda: call()[0] == 200, "a batch")
        status, answer = call()
        while status == 429:
            status, answer = call()
        assert [json.loads(line)["verdict"] for line in answer.splitlines()] == ["new"] * 4


def test_sighup_reads_tokens_and_limits_again(tmp_path, tokens):
    settings = tmp_path / "service.toml"
    settings.write_text('tokens = "tokens"\n')
    running = Service(tmp_path / "seen", "--config", settings)
    said = []
    reading = threading.Thread(target=lambda: said.extend(running.process.stderr))
    reading.start()
    status = lambda name: running.call("GET", "/v1/stats", headers=bearer(name))[0]
    hang_up = lambda: running.process.send_signal(signal.SIGHUP)
    try:
        assert (status("reader"), status("later")) == (200, 401)
        tokens.write_text(f"read {SECRETS['later']}\n")
        settings.write_text('threads = 7\ntokens = "tokens"\n[limits]\npage = "1KB"\n')
        hang_up()
        until(lambda: (status("reader"), status("later")) == (401, 200), "the new token")
        headers = {**JSON, **bearer("later")}
        assert running.call("POST", "/v1/pages", json.dumps({"text": text(1)}), headers)[0] == 413
        until(lambda: any("1 token; new limits" in line and "threads" in line for line in said), "a line in the log")
        # What is wrong changes nothing.
        for path, wrong in [(tokens, "nonsense\n"), (settings, "lisen = 1\n"), (settings, "[limits]\nrequests = 0\n")]:
            before, count = path.read_text(), sum("nothing is changed" in line for line in said)
            path.write_text(wrong)
            hang_up()
            until(lambda: sum("nothing is changed" in line for line in said) > count, "a line in the log")
            assert status("later") == 200
            path.write_text(before)
    finally:
        running.process.terminate()
        running.process.wait(timeout=LONGEST_WAIT)
        reading.join()
    assert running.process.returncode == 0


def test_secrets_are_never_logged(tmp_path, tokens):
    for form in ("text", "json"):
        with service(tmp_path / "seen", "--tokens", tokens, "--log-format", form, quiet=False) as running:
            running.call("GET", f"/v1/stats?token={SECRETS['boss']}&{SECRETS['reader']}", headers=bearer("boss"))
            running.call("GET", f"/v1/stats?store={SECRETS['news']}", headers={"Authorization": "Bearer wrong-wrong-wrong-wrong"})
            running.call("POST", "/v1/pages?store=never", json.dumps({"text": text(1)}), {**JSON, **bearer("reader")})
            lines = "\n".join(json.dumps({"text": text(number)}) for number in range(20))
            running.call("POST", "/v1/pages/batch", lines, {**NDJSON, **bearer("boss")})
            said = running.stop()
        assert not any(secret in said for secret in [*SECRETS.values(), "wrong-wrong"]), said
        lines = said.splitlines()
        for line in lines:
            stamp = json.loads(line)["timestamp"] if form == "json" else line.split(" ")[0]
            assert stamp.endswith("Z") and datetime.datetime.fromisoformat(stamp), line
        if form == "json":
            requests = {one["path"]: one for one in map(json.loads, lines) if one["message"] == "request"}
            pages = requests["/v1/pages"]
            assert (pages["client"], pages["token"], pages["query"], pages["status"]) == ("127.0.0.1", "3", "store=never", 200)
            assert requests["/v1/pages/batch"]["token"] == "boss"
        else:
            assert "127.0.0.1 3 POST /v1/pages?store=never 200" in said


def test_the_time_of_a_batch_is_that_of_its_last_line(tmp_path):
    with service(tmp_path / "seen", "--log-format", "json", quiet=False) as running:
        with socket.create_connection(running.host.split(":"), timeout=LONGEST_WAIT) as raw:
            raw.sendall(
                b"POST /v1/pages/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                b"Content-Length: 15\r\nConnection: close\r\n\r\n"
            )
            start = time.monotonic()
            assert b"200 OK" in raw.recv(65536)
            time.sleep(0.5)
            raw.sendall(b'{"text": "abc"}')
            waited = time.monotonic() - start
            while raw.recv(65536):
                pass
        said = running.stop()
    batch = [one for one in map(json.loads, said.splitlines()) if one.get("path") == "/v1/pages/batch"]
    assert len(batch) == 1 and batch[0]["seconds"] >= waited * 0.99


def test_pages_of_other_sites_may_do_nothing(tmp_path):
    with service(tmp_path / "seen", "--allow-origin", "https://seen.example") as running:
        own = f"http://{running.host}"
        page = json.dumps({"id": "a", "text": text(1)})
        store = lambda **headers: running.call(
            "POST", "/v1/pages?store=always", page, {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
        )
        assert store()[0] == 200 and store(Origin=own)[0] == 200 and store(Origin="https://seen.example")[0] == 200
        port = running.host.split(":")[1]
        for foreign in ["http://localhost:3000", "http://127.0.0.1", f"https://127.0.0.1:{port}", f"http://localhost:{port}", "null"]:
            assert "origins" in problem(store(Origin=foreign), 403, "forbidden")["detail"]
        problem(store(Sec_Fetch_Site="cross-site"), 403, "forbidden")
        problem(running.call("GET", "/v1/stats", headers={"Origin": "http://evil.example"}), 403, "forbidden")
        # What forms can send needs a header that they cannot; programs are told which.
        for form in [
            FORM,
            {"Content-Type": "multipart/form-data; boundary=x"},
            {"Origin": own},
            {"Origin": own, "Content-Type": "text/plain"},
            {"Sec-Fetch-Site": "same-origin"},
            {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"},
        ]:
            for method, path in [("DELETE", "/v1/pages/a"), ("POST", "/v1/backup")]:
                assert "X-Lookalike" in problem(running.call(method, path, "", form), 403, "forbidden")["detail"]
        assert running.call("GET", "/v1/pages/a")[0] == 200
        problem(running.call("POST", "/v1/backup", headers={**FORM, "X-Lookalike": "1"}), 409, "conflict")
        problem(running.call("POST", "/v1/backup"), 409, "conflict")
        assert running.call("DELETE", "/v1/pages/a", headers={"Origin": own, "X-Lookalike": "1"})[0] == 204


@pytest.mark.parametrize(
    "head, expected",
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/stats HTTP/1.0\r\n\r\n", 400),
        (b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET http://evil.example/v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /v1/stats HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        (b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET http://localhost/v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
    ],
)
def test_there_is_one_host(tmp_path, head, expected):
    with service(tmp_path / "seen") as running:
        with socket.create_connection(running.host.split(":"), timeout=LONGEST_WAIT) as raw:
            raw.sendall(head)
            assert int(raw.recv(65536).split(b" ")[1]) == expected


def certificate(directory, name):
    """A new certificate for localhost."""
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1", common_name=name)
    issued.private_key_pem.write_to_path(directory / "key.pem")
    (directory / "cert.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


class TlsService(Service):
    """The calls by HTTPS."""

    context = None

    def connection(self, timeout=60):
        host = self.host.removeprefix("https://")
        return http.client.HTTPSConnection(host, timeout=timeout, context=TlsService.context)


def test_tls_and_its_reload(tmp_path):
    if "without TLS" in lookalike("serve", tmp_path / "none", "--tls-cert", "x", "--tls-key", "y").stderr:
        pytest.skip("this program was built without the feature `tls`")
    refused = lookalike("serve", tmp_path / "seen", "--tls-cert", tmp_path / "no.pem", "--tls-key", tmp_path / "no.pem")
    assert refused.returncode != 0 and "no.pem" in refused.stderr
    TlsService.context = first = certificate(tmp_path, "first")
    arguments = ("--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem")
    running = TlsService(tmp_path / "seen", *arguments)
    said = []
    reading = threading.Thread(target=lambda: said.extend(running.process.stderr))
    reading.start()
    try:
        assert running.put({"id": "a", "text": text(1)})["stored"]
        host = running.host.removeprefix("https://")
        own = {"Origin": f"https://{host}", "X-Lookalike": "1"}
        assert running.call("DELETE", "/v1/pages/a", headers=own)[0] == 204
        problem(running.call("DELETE", "/v1/pages/a", headers={**own, "Origin": f"http://{host}"}), 403, "forbidden")
        # Plain HTTP is not answered, and does no harm.
        with pytest.raises((OSError, http.client.HTTPException)):
            plain = http.client.HTTPConnection(host, timeout=LONGEST_WAIT)
            plain.request("GET", "/healthz")
            plain.getresponse()
        kept = running.connection()
        assert running.call("GET", "/healthz", connection=kept)[0] == 200
        second = certificate(tmp_path, "second")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: any("certificates were read again" in line for line in said), "a line in the log")
        with pytest.raises(ssl.SSLError):
            running.call("GET", "/healthz")
        TlsService.context = second
        assert running.call("GET", "/healthz")[0] == 200
        assert running.call("GET", "/healthz", connection=kept)[0] == 200, "connections stay"
        # A bad file keeps the old ones.
        (tmp_path / "cert.pem").write_text("nonsense")
        running.process.send_signal(signal.SIGHUP)
        until(lambda: any("nothing is changed" in line for line in said), "a line in the log")
        assert running.call("GET", "/healthz")[0] == 200
        assert first is not second
    finally:
        running.process.terminate()
        running.process.wait(timeout=LONGEST_WAIT)
        reading.join()
    assert running.process.returncode == 0


def test_traces_go_to_a_collector(tmp_path):
    """OTLP by HTTP, with the trace that the client is part of."""
    received = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}", "OTEL_BSP_SCHEDULE_DELAY": "100"}
    trace = "0af7651916cd43dd8448eb211c80319c"
    with service(tmp_path / "seen", environment=environment) as running:
        headers = {**JSON, "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        assert running.call("POST", "/v1/pages?store=if_new", json.dumps({"text": text(1)}), headers)[0] == 200
        running.stop()
    collector.shutdown()
    if not received:
        features = subprocess.run(["grep", "-c", "OTEL_EXPORTER_OTLP_ENDPOINT", LOOKALIKE], capture_output=True, text=True)
        assert features.stdout.strip() == "0", "the program knows of traces, and sent none"
        pytest.skip("this program was built without the feature `otel`")
    spans = b"".join(body for path, body in received if path == "/v1/traces")
    assert b"POST /v1/pages" in spans and bytes.fromhex(trace) in spans and b"lookalike" in spans
