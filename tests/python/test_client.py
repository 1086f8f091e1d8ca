"""The Python client on the real service, and on one that is busy, broken or gone."""

import asyncio
import http.server
import itertools
import json
import pickle
import subprocess
import sys
import threading
import time
import tracemalloc

import httpx
import pytest
from lookalike import LookalikeError
from lookalike.client import (
    Answer,
    AsyncClient,
    BadRequest,
    Client,
    Conflict,
    NoAnswer,
    NotAllowed,
    NotFound,
    PageProblem,
    ServerFault,
    ServiceError,
    Unavailable,
)
from service import service, text


class Awaited:
    """An AsyncClient that is called as a Client is, so that one test is for both."""

    def __init__(self, *arguments, **settings):
        self.loop = asyncio.new_event_loop()
        self.client = settings.pop("of", None) or AsyncClient(*arguments, **settings)

    def __getattr__(self, name):
        return lambda *arguments, **settings: self.loop.run_until_complete(getattr(self.client, name)(*arguments, **settings))

    def collection(self, name):
        other = Awaited(of=self.client.collection(name))
        other.loop = self.loop
        return other

    def check_many(self, pages, **settings):
        answers = self.client.check_many(pages, **settings)
        try:
            while True:
                yield self.loop.run_until_complete(anext(answers))
        except StopAsyncIteration:
            pass
        finally:
            self.loop.run_until_complete(answers.aclose())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.run_until_complete(self.client.close())
        self.loop.close()


both = pytest.mark.parametrize("kind", [Client, Awaited], ids=["sync", "async"])


@both
def test_every_call(tmp_path, kind):
    with service(tmp_path / "seen") as running, kind(f"http://{running.host}/") as client:
        url = "http://a.org/x?y=1&z=é#end"
        page = {"url": url, "text": text(1)}
        assert client.check(page) == Answer(url, "new", (), False, False, True, "enough", None, {})
        first = client.check(page, store="if_new", explain=True)
        assert first.stored and first.explanation["why"]
        copy = client.check({"id": "copy", "html": f"<p>{text(1)}"})
        assert (copy.verdict, copy.of[0].id, copy.of[0].similarity, copy.seen) == ("exact", url, 1.0, True)
        assert not copy.follow_links and copy.raw["verdict"] == "exact"
        again = client.check(page, store="if_new")
        assert again.verdict == "exact" and not again.seen, "it is like nothing but itself"
        stored = client.get(url)
        assert (stored.id, stored.url, stored.tokens) == (url, url, 120)
        assert client.get("missing") is None
        assert client.compare(page, {"text": text(1)})["identical"]
        assert client.stats()["rows"] == 1
        assert client.delete(url) is True and client.delete(url) is False and client.get(url) is None

        news = client.create_collection("news", ngram=3, threshold=0.7)
        assert (news.name, news.config["ngram"], news.rows) == ("news", 3, 0)
        inside = client.collection("news")
        inside.check(page, store="always")
        assert inside.get(url) and client.get(url) is None
        assert [each.name for each in client.collections()] == ["default", "news"]
        with pytest.raises(Conflict, match="ngram"):
            client.create_collection("news", ngram=4)
        assert client.change_collection("news", ngram=3).rebuild is None, "it has it already"
        begun = client.change_collection("news", ngram=2)
        assert begun.rebuild is None or begun.rebuild["config"]["ngram"] == 2
        deadline = time.monotonic() + 60
        while client.collections()[1].rebuild is not None:
            assert time.monotonic() < deadline
        assert client.collections()[1].config["ngram"] == 2 and inside.get(url)
        with pytest.raises(NotFound) as missing:
            client.collection("none").get(url)
        assert missing.value.type == "urn:lookalike:no-such-collection", "that is not a page that is missing"


@both
def test_problems_are_exceptions(tmp_path, kind):
    tokens = tmp_path / "tokens"
    tokens.write_text("read reader-reader-reader\nwrite writer-writer-writer\n")
    with service(tmp_path / "seen", "--tokens", tokens) as running:
        url = f"http://{running.host}"
        with kind(url) as nobody, kind(url, token="reader-reader-reader") as reader, kind(url, token="writer-writer-writer") as writer:
            with pytest.raises(NotAllowed) as refused:
                nobody.stats()
            error = refused.value
            assert (error.status, error.type) == (401, "urn:lookalike:unauthorized") and error.request_id and error.detail
            assert isinstance(error, LookalikeError) and isinstance(error, PermissionError)
            again = pickle.loads(pickle.dumps(error))
            assert (type(again), str(again), again.request_id) == (NotAllowed, str(error), error.request_id)
            assert reader.check({"text": text(1)}).verdict == "new"
            with pytest.raises(NotAllowed, match="reading only"):
                reader.check({"text": text(1)}, store="if_new")
            assert writer.check({"text": text(1)}, store="if_new").stored
            with pytest.raises(BadRequest, match="html or text") as bad:
                writer.check({"url": "http://a.org"})
            assert bad.value.status == 422
            with pytest.raises(BadRequest):
                writer.check({"text": "x", "colour": "red"})


@both
def test_many_pages(tmp_path, kind):
    with service(tmp_path / "seen") as running, kind(f"http://{running.host}") as client:
        pages = [{"id": f"page {number}", "text": text(number % 300, 20)} for number in range(700)]
        pages[650] = {"id": "nothing"}
        answers = list(client.check_many(iter(pages), store="if_new", batch_pages=100))
        assert len(answers) == 700
        assert [answer.verdict for answer in answers[:300]] == ["new"] * 300
        wrong = answers.pop(650)
        assert isinstance(wrong, PageProblem) and (wrong.index, wrong.status) == (650, 422)
        assert {answer.verdict for answer in answers[300:]} == {"exact"}
        assert [answer.id for answer in answers[:650]] == [page["id"] for page in pages[:650]]
        assert list(client.check_many([])) == []


def test_many_pages_from_an_asynchronous_source(tmp_path):
    async def pages():
        for number in range(30):
            yield {"id": str(number), "text": text(number)}

    async def run(url):
        async with AsyncClient(url) as client:
            return [answer.id async for answer in client.check_many(pages(), batch_pages=7)]

    with service(tmp_path / "seen") as running:
        assert asyncio.run(run(f"http://{running.host}")) == [str(number) for number in range(30)]


@both
def test_memory_does_not_grow_with_the_number_of_pages(tmp_path, kind):
    """64 MB pass through, of which a batch or two are held."""
    with service(tmp_path / "seen") as running, kind(f"http://{running.host}") as client:
        page = {"text": "word " * 6400}
        pulled = itertools.count()

        def pages():
            for _ in range(2000):
                next(pulled)
                yield page

        tracemalloc.start()
        answers = client.check_many(pages())
        next(answers)
        assert next(pulled) < 500, "what is not needed yet is not read"
        count = 1 + sum(1 for _ in answers)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == 2000 and peak < 32 << 20, peak


class Fake(http.server.BaseHTTPRequestHandler):
    """A service that answers as it is told: status, headers and body; or not at all."""

    answers = []
    asked = []
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Fake.asked.append((self.command, self.path, dict(self.headers), body))
        told = Fake.answers.pop(0)
        if told is None:
            self.close_connection = True
            return
        status, headers, body = told
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if "Content-Length" in headers:
            self.close_connection = True

    do_GET = do_POST = do_DELETE = do_PUT = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def fake(monkeypatch):
    """A faked service, and how long the clients waited between attempts."""
    waits = []

    async def wait(seconds):
        waits.append(seconds)

    monkeypatch.setattr("lookalike.client._sync.time.sleep", waits.append)
    monkeypatch.setattr("lookalike.client._async.asyncio.sleep", wait)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Fake.answers, Fake.asked = [], []
    yield f"http://127.0.0.1:{server.server_port}", waits
    server.shutdown()
    server.server_close()


def busy(status=503, kind="too-busy", **headers):
    problem = {"type": f"urn:lookalike:{kind}", "title": "Busy", "status": status, "detail": "try again"}
    return status, {"Content-Type": "application/problem+json", **headers}, problem


OK = (200, {"Content-Type": "application/json"}, {"rows": 7})
NEW = {"id": "x", "verdict": "new", "of": [], "stored": True, "replaced": False, "length": "enough"}


@both
def test_a_busy_service_is_asked_again(fake, kind):
    url, waits = fake
    with kind(url, backoff=0.5, token="abc") as client:
        Fake.answers = [busy(), busy(429, "rate-limited", **{"Retry-After": "7"}), OK]
        assert client.stats() == {"rows": 7}
        assert 0.25 <= waits[0] <= 0.5 and waits[1] == 7
        assert {headers["Authorization"] for _, _, headers, _ in Fake.asked} == {"Bearer abc"}
        assert {headers["X-Lookalike"] for _, _, headers, _ in Fake.asked} == {"1"}
        # What is stored is sent again, too: it was refused.
        Fake.answers, Fake.asked = [busy(), (200, {}, NEW)], []
        assert client.check({"text": "x"}, store="if_new").stored
        assert Fake.asked[0][3] == Fake.asked[1][3] == b'{"text":"x"}'
        # A batch is refused as a whole.
        Fake.answers, Fake.asked = [busy(), (200, {}, json.dumps(NEW).encode() + b"\n")], []
        assert [answer.id for answer in client.check_many([{"text": "x"}])] == ["x"]
        # Waits grow, and end.
        waits.clear()
        Fake.answers = [busy()] * 6
        with pytest.raises(Unavailable) as given_up:
            client.stats()
        assert len(waits) == 5 and waits[4] > waits[0] and not Fake.answers and given_up.value.status == 503
    with kind(url, retries=0) as hasty, pytest.raises(Unavailable) as refused:
        Fake.answers = [busy(**{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"})]
        hasty.stats()
    assert refused.value.retry_after > 1e9


@both
@pytest.mark.parametrize(
    "answer, expected",
    [
        (busy(503, "read-only"), Unavailable),
        (busy(507, "storage-full"), Unavailable),
        (busy(500, "internal"), ServerFault),
        (busy(400, "bad-json"), BadRequest),
        ((502, {}, b"<html>a proxy"), ServerFault),
    ],
    ids=["read-only", "full", "fault", "bad", "proxy"],
)
def test_what_waiting_does_not_help_is_not_repeated(fake, kind, answer, expected):
    url, waits = fake
    Fake.answers = [answer]
    with kind(url) as client, pytest.raises(expected):
        client.stats()
    assert waits == []


@both
def test_lost_answers(fake, kind):
    url, waits = fake
    with kind(url) as client:
        # What only reads is asked again.
        Fake.answers = [None, OK]
        assert client.stats() == {"rows": 7}
        # What may have been done is not done twice.
        Fake.answers = [None]
        with pytest.raises(NoAnswer, match="no answer from http"):
            client.check({"text": "x"}, store="always")
        half = {"Content-Length": "1000"}
        Fake.answers = [(200, half, json.dumps(NEW).encode() + b"\n")]
        answers = client.check_many([{"text": "x"}, {"text": "y"}], store="if_new")
        assert next(answers).id == "x"
        with pytest.raises(NoAnswer):
            list(answers)
        Fake.answers = [(200, {}, json.dumps(NEW).encode() + b"\n")]
        with pytest.raises(NoAnswer, match="after 1 of 2"):
            list(client.check_many([{"text": "x"}, {"text": "y"}]))
        assert Fake.answers == []
    with kind("http://127.0.0.1:1", retries=2) as nowhere, pytest.raises(NoAnswer) as unreachable:
        waits.clear()
        nowhere.check({"text": "x"}, store="if_new")
    assert len(waits) == 2 and isinstance(unreachable.value, ConnectionError) and isinstance(unreachable.value, ServiceError)


def test_a_client_of_ones_own():
    seen = []

    def answer(request):
        seen.append(request)
        return httpx.Response(200, json={"rows": 1})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http_client:
        with Client("https://lookalike.example/base/", http=http_client) as client:
            client.collection("news").stats()
        assert not http_client.is_closed, "it is not ours"
    assert str(seen[0].url) == "https://lookalike.example/base/v1/collections/news/stats"


def test_it_needs_neither_the_engine_nor_numpy():
    code = """
import sys
sys.modules["lookalike._lookalike"] = sys.modules["numpy"] = None
import lookalike.client
import lookalike
assert issubclass(lookalike.client.ServiceError, lookalike.LookalikeError)
try:
    lookalike.dedup
except ImportError:
    print("as it should be")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "as it should be\n", ran.stderr


def test_without_httpx_it_says_what_to_install():
    code = "import sys; sys.modules['httpx'] = None; import lookalike.client"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install httpx" in ran.stderr
