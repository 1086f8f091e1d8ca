"""The service as its clients meet it: answers, refusals, limits, tokens."""

import gzip
import json
import resource
import shutil
import socket
import subprocess
import threading

import pytest
from service import LOOKALIKE, lookalike, problem, service, text

JSON = {"Content-Type": "application/json"}
NDJSON = {"Content-Type": "application/x-ndjson"}


def test_answers(tmp_path):
    with service(tmp_path / "seen") as running:
        first = running.put({"url": "http://a.org/1", "text": text(1, 800)})
        assert first["verdict"] == "new" and first["stored"] and first["id"] == "http://a.org/1"
        assert first["crawl"] == {"follow_links": True, "store": True}
        near = running.check({"text": text(1, 800) + " and more"})
        assert near["verdict"] == "near" and near["id"] is None and not near["stored"]
        assert near["crawl"] == {"follow_links": False, "store": False}
        assert near["of"][0]["id"] == "http://a.org/1"
        assert near["of"][0]["distance"] is None and not near["of"][0]["estimated"]
        assert 0.9 < near["of"][0]["similarity"] <= 1 and near["of"][0]["threshold"] == 0.7
        html = "<html><title>T</title><p>" + text(1, 800).replace(" ", " <b></b>") + "</html>"
        exact = running.put({"id": "b", "html": html})
        assert exact["verdict"] == "exact" and not exact["stored"]
        assert exact["crawl"] == {"follow_links": False, "store": False}
        assert running.put({"id": "b", "html": html}, "always")["stored"]
        status, stored = running.call("GET", "/v1/pages/b")
        assert status == 200 and stored["title"] == "T" and stored["tokens"] == 800
        status, explained = running.call("POST", "/v1/pages?explain=true", {"text": text(2)})
        assert "No stored page shares enough" in explained["explanation"]["why"]
        asked = {"fingerprints": ["0123456789abcdef"], "radius": 0}
        problem(running.call("POST", "/v1/fingerprints/query", asked), 409, "conflict")
        assert running.call("DELETE", "/v1/pages/b")[0] == 204
        problem(running.call("GET", "/v1/pages/b"), 404, "not-found")
        # A page may have the name of another path.
        running.put({"id": "batch", "text": text(3)})
        assert running.call("GET", "/v1/pages/batch")[0] == 200
        running.put({"id": "a/b ü?", "text": text(4)})
        assert running.call("GET", "/v1/pages/a%2Fb%20%C3%BC%3F")[1]["id"] == "a/b ü?"


def test_fingerprints_as_manku_has_them(tmp_path):
    with service(tmp_path / "seen") as running:
        assert running.call("PUT", "/v1/collections/prints", {"method": "simhash"})[0] == 201
        at = "/v1/collections/prints"
        for name in ("a", "b"):
            body = {"id": name, "text": text(1, 800)}
            assert running.call("POST", f"{at}/pages?store=always", body)[1]["stored"]
        near = running.call("POST", f"{at}/pages?explain=true", {"text": text(1, 800) + " and more"})[1]
        assert near["verdict"] == "near" and near["of"][0]["distance"] <= 3
        assert "bits" in near["explanation"]["why"]
        stored = running.call("GET", f"{at}/pages/a")[1]
        asked = {"fingerprints": [stored["fingerprint"]], "radius": 0}
        found = running.call("POST", f"{at}/fingerprints/query", asked)[1]
        assert {row["id"] for row in found["matches"][0]["matches"]} == {"a", "b"}


def test_batches_are_streamed_both_ways(tmp_path):
    with service(tmp_path / "seen") as running:
        lines = [json.dumps({"id": f"p{number}", "text": text(number % 50)}) for number in range(100)]
        lines[10] = "no json"
        lines[20] = ""
        connection = running.connection()
        body = "\n".join(lines).encode()
        connection.request("POST", "/v1/pages/batch?store=if_new", body, NDJSON)
        answers = [json.loads(line) for line in connection.getresponse().read().splitlines()]
        assert len(answers) == 99, "an empty line is not a page"
        assert answers[10]["type"] == "urn:lookalike:bad-json" and answers[10]["line"] == 11
        verdicts = [answer.get("verdict") for answer in answers]
        assert verdicts[:10] == ["new"] * 10 and verdicts[50:59] == ["exact"] * 9, verdicts
        # The answer to a line comes before the next line is sent.
        with socket.create_connection(running.host.split(":")) as raw:
            raw.sendall(
                b"POST /v1/pages/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            received = b""
            for number in range(5):
                line = json.dumps({"text": text(number)}).encode() + b"\n"
                raw.sendall(b"%x\r\n%s\r\n" % (len(line), line))
                while received.count(b'"verdict"') <= number:
                    part = raw.recv(65536)
                    assert part, received
                    received += part
            raw.sendall(b"0\r\n\r\n")


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_packed_bodies(tmp_path, pack):
    with service(tmp_path / "seen") as running:
        body = json.dumps({"id": "a", "text": text(1)}).encode()
        packed = gzip.compress(body) if pack == "gzip" else subprocess.run(
            ["zstd", "-c"], input=body, capture_output=True, check=True
        ).stdout
        headers = {**JSON, "Content-Encoding": pack}
        assert running.call("POST", "/v1/pages?store=if_new", packed, headers)[1]["stored"]
        assert running.call("POST", "/v1/pages/batch", packed, {**NDJSON, "Content-Encoding": pack})[0] == 200
        bomb = b'{"text": "' + b"a" * (64 << 20) + b'"}'
        bomb = gzip.compress(bomb) if pack == "gzip" else subprocess.run(
            ["zstd", "-c"], input=bomb, capture_output=True, check=True
        ).stdout
        problem(running.call("POST", "/v1/pages", bomb, headers), 413, "too-large")
        for cut in (len(packed) // 2, 1):
            problem(running.call("POST", "/v1/pages", packed[:-cut], headers), 400, "bad-request")
        # Of a batch, what came before the cut is answered; that something is missing is said.
        half = running.call("POST", "/v1/pages/batch", packed[:-1], {**NDJSON, "Content-Encoding": pack})[1]
        assert json.loads(half.splitlines()[-1])["type"] == "urn:lookalike:bad-request", half


LONG = "x" * 3000
MALFORMED = {
    "no body": ("POST", "/v1/pages", b"", JSON, 400, "bad-json"),
    "no json": ("POST", "/v1/pages", b"hello", JSON, 400, "bad-json"),
    "half": ("POST", "/v1/pages", b'{"text": "a', JSON, 400, "bad-json"),
    "not utf-8": ("POST", "/v1/pages", b'{"text": "\xff\xfe"}', JSON, 400, "bad-json"),
    "lone surrogate": ("POST", "/v1/pages", rb'{"text": "\ud800"}', JSON, 400, "bad-json"),
    "a list": ("POST", "/v1/pages", b"[]", JSON, 400, "bad-json"),
    "wrong type": ("POST", "/v1/pages", b'{"text": 7}', JSON, 400, "bad-json"),
    "unknown field": ("POST", "/v1/pages", b'{"text": "a", "txt": "b"}', JSON, 400, "bad-json"),
    "field twice": ("POST", "/v1/pages", b'{"text": "a", "text": "b"}', JSON, 400, "bad-json"),
    "deep": ("POST", "/v1/pages", b'{"text":' + b"[" * 100000, JSON, 400, "bad-json"),
    "neither": ("POST", "/v1/pages", b'{"id": "a"}', JSON, 422, "bad-field"),
    "both": ("POST", "/v1/pages", b'{"html": "a", "text": "b"}', JSON, 422, "bad-field"),
    "empty id": ("POST", "/v1/pages", b'{"id": "", "text": "b"}', JSON, 422, "bad-field"),
    "long id": ("POST", "/v1/pages", json.dumps({"id": LONG, "text": "b"}).encode(), JSON, 422, "bad-field"),
    "id with NUL": ("POST", "/v1/pages", rb'{"id": "a\u0000", "text": "b"}', JSON, 422, "bad-field"),
    "no type": ("POST", "/v1/pages", b'{"text": "a"}', {}, 415, "unsupported-media"),
    "text/plain": ("POST", "/v1/pages", b'{"text": "a"}', {"Content-Type": "text/plain"}, 415, "unsupported-media"),
    "packed with br": ("POST", "/v1/pages", b"x", {**JSON, "Content-Encoding": "br"}, 415, "unsupported-media"),
    "wrong store": ("POST", "/v1/pages?store=sometimes", b'{"text": "a"}', JSON, 400, "bad-request"),
    "unknown parameter": ("POST", "/v1/pages?stor=never", b'{"text": "a"}', JSON, 400, "bad-request"),
    "parameter twice": ("POST", "/v1/pages?store=never&store=always", b'{"text": "a"}', JSON, 400, "bad-request"),
    "wrong method": ("PATCH", "/v1/pages", b"{}", JSON, 405, "method-not-allowed"),
    "no such path": ("GET", "/v2/pages", None, {}, 404, "not-found"),
    "no such page": ("GET", "/v1/pages/none", None, {}, 404, "not-found"),
    "path not utf-8": ("GET", "/v1/pages/%ff", None, {}, 400, "bad-request"),
    "no such collection": ("POST", "/v1/collections/none/pages", b'{"text": "a"}', JSON, 404, "no-such-collection"),
    "collection outside": ("PUT", "/v1/collections/..%2F..%2Fetc", b"{}", JSON, 422, "bad-field"),
    "collection of nonsense": ("PUT", "/v1/collections/x", b'{"ngram": 99}', JSON, 422, "bad-field"),
    "language of nowhere": ("PUT", "/v1/collections/x", b'{"language": "xxx"}', JSON, 422, "bad-field"),
    "fingerprint of 15 digits": (
        "POST", "/v1/fingerprints/query", b'{"fingerprints": ["0123456789abcde"]}', JSON, 422, "bad-field",
    ),
    "signed fingerprint": (
        "POST", "/v1/fingerprints/query", b'{"fingerprints": ["+123456789abcdef"]}', JSON, 422, "bad-field",
    ),
    "no fingerprints": ("POST", "/v1/fingerprints/query", b'{"fingerprints": []}', JSON, 422, "bad-field"),
    "radius too large": (
        "POST", "/v1/fingerprints/query", b'{"fingerprints": ["0123456789abcdef"], "radius": 9}', JSON, 422, "bad-field",
    ),
    "no list": ("POST", "/v1/refine", b'{"answer": 42}', JSON, 422, "bad-field"),
    "no text": ("POST", "/v1/refine", b'{"results": [{"url": "http://a.org/"}]}', JSON, 422, "bad-field"),
    "no result": ("POST", "/v1/refine", b'{"results": [{"text": "a"}, 7]}', JSON, 422, "bad-field"),
    "title alone": ("POST", "/v1/refine?evidence=title", b'{"results": [{"text": "a"}]}', JSON, 422, "bad-field"),
    "no field name": ("POST", "/v1/refine?group_field=", b'{"results": []}', JSON, 422, "bad-field"),
    "field taken": ("POST", "/v1/refine", b'{"results": [{"text": "a", "lookalike": 1}]}', JSON, 422, "bad-field"),
    "broken answer": ("POST", "/v1/refine", b'{"results": [', JSON, 400, "bad-json"),
    "threshold 2": ("POST", "/v1/refine", b'{"results": [{"text": "a"}], "threshold": 2}', JSON, 422, "bad-field"),
    "one page": ("POST", "/v1/compare", b'{"left": {"text": "a"}}', JSON, 400, "bad-json"),
    "no backups": ("POST", "/v1/backup", b"", {}, 409, "conflict"),
    "other host": ("GET", "/v1/stats", None, {"Host": "evil.example"}, 403, "forbidden"),
    "other config": ("GET", "/v1/stats", None, {"Lookalike-Config": "0"}, 409, "conflict"),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with service(tmp_path_factory.mktemp("shared") / "seen") as running:
        yield running


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_requests_are_refused_with_the_reason(shared, case):
    method, path, body, headers, status, kind = MALFORMED[case]
    problem(shared.call(method, path, body, headers), status, kind)


def raw(running, request, patience=20):
    """Everything that comes back for some bytes."""
    with socket.create_connection(running.host.split(":"), timeout=patience) as connection:
        connection.sendall(request)
        received = b""
        while part := connection.recv(65536):
            received += part
            if b"\r\n\r\n" in received:
                break
        return received


@pytest.mark.parametrize(
    "request_bytes, status",
    [
        (b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (414, 431, 400)),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40000 + b"\r\n\r\n", (431, 400)),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 200 + b"\r\n", (431, 400)),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", (400,)),
        (b"POST /v1/pages HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", (400,)),
    ],
)
def test_what_is_no_request(shared, request_bytes, status):
    assert int(raw(shared, request_bytes).split(b" ")[1]) in status
    assert shared.call("GET", "/healthz")[0] == 200


def test_large_pages_and_batches(tmp_path):
    settings = tmp_path / "service.toml"
    settings.write_text('[limits]\npage = "100KB"\nbody = "200KB"\nbatch_lines = 5\n')
    with service(tmp_path / "seen", "--config", settings) as running:
        body = problem(running.call("POST", "/v1/pages", {"text": "a " * 60_000}), 413, "too-large")
        assert "100000" in body["detail"]
        problem(running.call("POST", "/v1/pages", {"text": "a " * 600_000}), 413, "too-large")
        status, answer = running.call("POST", "/v1/pages/batch", b'{"text": "one"}\n' * 9, NDJSON)
        lines = [json.loads(line) for line in answer.splitlines()]
        assert len(lines) == 6 and lines[5]["type"] == "urn:lookalike:too-large"
        status, answer = running.call("POST", "/v1/pages/batch", b"a" * 900_000, NDJSON)
        assert json.loads(answer)["type"] == "urn:lookalike:too-large"


def test_tokens(tmp_path):
    (tmp_path / "tokens").write_text("read reader-reader-reader\nwrite writer-writer-writer\n")
    refused = lookalike("serve", tmp_path / "seen", "--listen", "0.0.0.0:0")
    assert refused.returncode == 2 and "--tokens" in refused.stderr
    read, write = ({"Authorization": f"Bearer {name}"} for name in ["reader-reader-reader", "writer-writer-writer"])
    for options in [
        {"arguments": ("--tokens", tmp_path / "tokens")},
        {"arguments": (), "environment": {"LOOKALIKE_TOKENS": (tmp_path / "tokens").read_text().replace("\n", ",")}},
    ]:
        arguments = options.pop("arguments")
        with service(tmp_path / "seen", *arguments, **options) as running:
            page = json.dumps({"id": "a", "text": text(1)})
            problem(running.call("POST", "/v1/pages", page, JSON), 401, "unauthorized")
            problem(running.call("GET", "/metrics"), 401, "unauthorized")
            problem(running.call("GET", "/v1/stats", headers={"Authorization": "Bearer x"}), 401, "unauthorized")
            assert running.call("POST", "/v1/pages", page, {**JSON, **read})[0] == 200
            for call in [
                ("POST", "/v1/pages?store=always", page, JSON),
                ("POST", "/v1/pages/batch?store=if_new", page, NDJSON),
                ("DELETE", "/v1/pages/a", None, {}),
                ("PUT", "/v1/collections/x", "{}", JSON),
                ("POST", "/v1/backup", None, {}),
            ]:
                problem(running.call(*call[:3], {**call[3], **read}), 403, "forbidden")
            assert running.call("POST", "/v1/pages?store=always", page, {**JSON, **write})[0] == 200
            assert running.call("GET", "/healthz")[0] == 200 and running.call("GET", "/openapi.json")[0] == 200


def test_collections_are_apart_and_guarded(tmp_path):
    directory = tmp_path / "seen"
    settings = tmp_path / "service.toml"
    settings.write_text('[collections.news]\nlanguage = "deu"\nngram = 3\nradius = 4\n')
    with service(directory, "--config", settings) as running:
        running.put({"id": "a", "text": text(1)})
        status, answer = running.call("POST", "/v1/collections/news/pages?store=if_new", {"id": "a", "text": text(1)})
        assert answer["verdict"] == "new"
        assert running.call("PUT", "/v1/collections/more", {"threshold": 0.8})[0] == 201
        assert running.call("PUT", "/v1/collections/more", {"threshold": 0.8})[0] == 200
        problem(running.call("PUT", "/v1/collections/more", {"threshold": 0.7}), 409, "conflict")
        names = [one["name"] for one in running.call("GET", "/v1/collections")[1]["collections"]]
        assert names == ["default", "more", "news"]
        news = running.call("GET", "/v1/collections/news")[1]
        assert news["config"]["language"] == "deu" and news["config"]["radius"] == 4 and news["rows"] == 1
        meant = {"Lookalike-Config": news["config_hash"]}
        assert running.call("GET", "/v1/collections/news/stats", headers=meant)[0] == 200
        problem(running.call("GET", "/v1/stats", headers=meant), 409, "conflict")
        running.stop()
    # Each is an index of its own; others are found again without being named.
    assert lookalike("index", "verify", directory / "collections" / "news").returncode == 0
    with service(directory) as running:
        assert running.call("GET", "/v1/collections/more/stats")[0] == 200
    settings.write_text("[collections.news]\nradius = 3\n")
    refused = lookalike("serve", directory, "--config", settings, "--listen", "127.0.0.1:0")
    assert refused.returncode != 0 and "news" in refused.stderr


def test_one_of_many_is_new(tmp_path):
    """Sixteen clients send like pages at the same moment; one is stored."""
    settings = tmp_path / "service.toml"
    settings.write_text('[collections.default]\nlanguage = "eng"\n')
    with service(tmp_path / "seen", "--config", settings) as running:
        for round_number in range(10):
            barrier, answers = threading.Barrier(16), []
            # Words that stand for nothing make them different, and no more.
            page = text(round_number, 300)

            def send(number):
                connection = running.connection()
                connection.connect()
                barrier.wait()
                like = {"id": f"{round_number}-{number}", "text": page + " of the" * number}
                answers.append(running.put(like, connection=connection))

            threads = [threading.Thread(target=send, args=(number,)) for number in range(16)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            stored = [answer for answer in answers if answer["stored"]]
            assert len(stored) == 1, answers
            assert {answer["of"][0]["id"] for answer in answers if not answer["stored"]} == {stored[0]["id"]}


def test_idle_and_slow_clients_do_not_stop_a_healthy_one(tmp_path):
    settings = tmp_path / "service.toml"
    settings.write_text("[limits]\nrequest_seconds = 3\nidle_seconds = 3\n")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with service(tmp_path / "seen", "--config", settings) as running:
        address = running.host.split(":")
        idle = [socket.create_connection(address) for _ in range(1000)]
        slow = [socket.create_connection(address) for _ in range(200)]
        for number, connection in enumerate(slow):
            if number % 2:
                connection.sendall(b"POST /v1/pages HTTP/1.1\r\nHost: localh")
            else:
                connection.sendall(
                    b"POST /v1/pages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 1000\r\n\r\n{"
                )
        ended = threading.Event()

        def dribble():
            while not ended.wait(0.2):
                for connection in slow:
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        pass

        dribbling = threading.Thread(target=dribble)
        dribbling.start()
        connection = running.connection()
        for number in range(300):
            assert running.put({"id": str(number), "text": text(number)}, connection=connection)["stored"]
        # All of them are cut off, though the slow ones send all the time.
        for other in idle + slow:
            other.settimeout(30)
            try:
                while other.recv(65536):
                    pass
            except ConnectionError:
                pass
            other.close()
        ended.set()
        dribbling.join()
        assert running.check({"text": text(5)})["verdict"] == "exact"


def test_too_many_batches_at_once_are_refused(tmp_path):
    settings = tmp_path / "service.toml"
    settings.write_text("[limits]\nbatches = 2\n")
    with service(tmp_path / "seen", "--config", settings) as running:
        head = b"POST /v1/pages/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        head += b"Content-Length: 15\r\n\r\n"
        held = [socket.create_connection(running.host.split(":"), timeout=60) for _ in range(2)]
        for connection in held:
            connection.sendall(head)
            # Its answer begins before its first line has come.
            assert b"200 OK" in connection.recv(65536)
        problem(running.call("POST", "/v1/pages/batch", b'{"text": "abc"}', NDJSON), 503, "too-busy")
        assert running.headers["retry-after"] == "1"
        assert running.check({"text": "pages are not kept waiting by batches"})["verdict"] == "new"
        for connection in held:
            connection.sendall(b'{"text": "abc"}')
            received = b""
            while not received.endswith(b"0\r\n\r\n"):
                part = connection.recv(65536)
                assert part, received
                received += part
            assert b'"verdict"' in received
            connection.close()
        assert running.call("POST", "/v1/pages/batch", b'{"text": "abc"}', NDJSON)[0] == 200


def test_numbers_and_request_ids(tmp_path):
    with service(tmp_path / "seen", quiet=False) as running:
        running.put({"id": "a", "text": text(1)})
        running.call("GET", "/v1/stats", headers={"X-Request-Id": "mine-17"})
        assert running.headers["x-request-id"] == "mine-17"
        running.call("GET", "/v1/stats", headers={"X-Request-Id": "bad id\t"})
        assert running.headers["x-request-id"] != "bad id\t"
        assert running.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in running.headers
        numbers = running.call("GET", "/metrics")[1].decode()
        for name in [
            'lookalike_requests_total{route="/v1/pages",method="POST",status="2xx"} 1',
            'lookalike_request_seconds_bucket{route="/v1/pages",method="POST",le="+Inf"} 1',
            'lookalike_rows{collection="default"} 1',
            'lookalike_sync_groups_total{collection="default"} 1',
            "lookalike_sync_seconds_total",
            "lookalike_merges_total",
            'lookalike_pages_total{collection="default",verdict="new"} 1',
        ]:
            assert name in numbers, name
        said = running.stop()
        assert "POST /v1/pages?store=if_new 200" in said and "mine-17" in said


def test_wrong_settings_are_reported(tmp_path):
    for arguments, word in [
        (("--listen", "nowhere"), "--listen"),
        (("--config", tmp_path / "none.toml"), "none.toml"),
        (("--tokens", tmp_path / "none"), "none"),
    ]:
        refused = lookalike("serve", tmp_path / "seen", *arguments)
        assert refused.returncode != 0 and word in refused.stderr, refused.stderr
    with service(tmp_path / "seen") as running:
        taken = lookalike("serve", tmp_path / "other", "--listen", running.host)
        assert taken.returncode == 2 and running.host in taken.stderr, taken.stderr
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "holiday.jpg").write_text("x")
    refused = lookalike("serve", strange, "--listen", "127.0.0.1:0")
    assert refused.returncode == 2 and "other things" in refused.stderr
    shutil.rmtree(strange)


def test_refine_answers_as_the_command_line_does(shared, tmp_path):
    story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt at all. " * 4
    other = "Prices of bread and milk rose again this spring, and bakers say that flour is the reason for it. " * 4
    source = lambda title, body: {"title": title, "body": body, "n": 1.50}
    hits = [("a", "Ferry", story), ("b", "Bread", other), ("c", "Ferry again", story)]
    answers = [
        {"took": 3, "hits": {"total": {"value": 3}, "hits": [{"_id": i, "_source": source(t, x)} for i, t, x in hits]}},
        {"query": "q", "results": [{"url": f"http://{i}.org/", "title": t, "content": x} for i, t, x in hits]},
        [{"id": i, "html": f"<p>{x}</p>"} for i, t, x in hits],
        {"results": []},
    ]
    for number, answer in enumerate(answers):
        sent = json.dumps(answer)
        (tmp_path / "answer.json").write_text(sent)
        for query, flags in [("", []), ("?mark=true&method=minhash&threshold=0.6", ["--mark", "--method", "minhash", "--threshold", "0.6"])]:
            status, body = shared.call("POST", f"/v1/refine{query}", sent.encode(), JSON)
            assert status == 200, body
            printed = subprocess.run(
                [LOOKALIKE, "refine", "answer.json", "--json", *flags], cwd=tmp_path, capture_output=True, text=True
            )
            assert printed.returncode == 0, printed.stderr
            assert body == json.loads(printed.stdout), number
    # The folded one names what it was folded for, and is not lost.
    folded = shared.call("POST", "/v1/refine", json.dumps(answers[0]).encode(), JSON)[1]["hits"]["hits"]
    assert [hit["_id"] for hit in folded] == ["a", "b"]
    other = folded[0]["lookalike"]["others"][0]
    assert (other["id"], other["relation"], other["evidence"]) == ("c", "exact", ["text"])
    assert other["result"] == answers[0]["hits"]["hits"][2]
