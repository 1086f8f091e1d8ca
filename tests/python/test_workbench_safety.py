"""The workbench against hostile pages, other sites, and people without a token."""

import http.server
import json
import random
import subprocess
import threading

import pytest

from workbench import LOOKALIKE, viewing

WORDS = "the harbour board decided on tuesday that the night ferry will sail again from march and nobody was hurt in the storm".split()


@pytest.fixture
def trap():
    """A server that nobody should ever ask: every request is kept."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.send_header("Content-Type", "text/html")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()


def hostile_pages(trap):
    """Pages that try to run a script, to load something, to leave their place; in titles, texts, ids and markup."""
    run = f"fetch('{trap}/ran');document.title='taken';parent.document.title='taken'"
    text = "{text}"
    bodies = {
        "script": f"<title></title><script>{run}</script><title>x<script>{run}</script></title><p>{text}<script src='{trap}/a.js'></script>",
        "handlers": f"<body onload=\"{run}\"><img src=x onerror=\"{run}\"><svg onload=\"{run}\"></svg><details open ontoggle=\"{run}\"><p>{text}",
        "styles": f"<style>@import '{trap}/a.css'; * {{ position: fixed; inset: 0; background: url({trap}/b.png) }} @font-face {{ font-family: x; src: url({trap}/c.woff) }} body {{ font-family: x }}</style></style><p style=\"background:\\75 rl({trap}/d.png)\">{text}",
        "loads": f"<base href='{trap}/'><meta http-equiv=refresh content='0;url={trap}/r'><link rel=stylesheet href='{trap}/e.css'><link rel=preload as=image href='{trap}/f.png'><img src='{trap}/g.png' srcset='{trap}/h.png 2x'><iframe src='{trap}/i'></iframe><object data='{trap}/j'></object><video src='{trap}/k' autoplay poster='{trap}/l'></video><p>{text}",
        "links": f"<p>{text}<a href='{trap}/m' ping='{trap}/n' target=_top>click</a><form action='{trap}/o'><button autofocus>go</button></form><a href='javascript:{run}'>x</a>",
        "breakout": f"</main></body></html><script>{run}</script><p>{text}</article></section><textarea></title></style></script><!--",
        "direction": f"<title>\u202e\u05e9\u05dc\u05d5\u05dd\u202e</title><p dir=rtl>\u202e{text}",
        "nul": f"<p>a\0b\x01\x1b[31m {text}\0",
        "line": f"<title>{'T' * 20000}</title><p>{text} {'x' * 5_000_000}",
        "nested": "<div>" * 20000 + text,
    }
    # Each has a text of its own: they are clusters of two.
    own = lambda name: " ".join(random.Random(name).choices(WORDS, k=120))
    return {name: body.replace("{text}", own(name)) for name, body in bodies.items()}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A place for results of hostile pages."""
    return tmp_path_factory.mktemp("hostile")


def make(hostile, trap):
    pages = hostile / "pages"
    pages.mkdir()
    for name, body in hostile_pages(trap).items():
        for copy in ["one", "two"]:
            file = pages / f"{name}-<b onclick=alert(1)>-{copy}.html"
            file.write_bytes(f"<!doctype html>{body} {copy} end".encode() + (b"\xff\xfe\x80 broken" if name == "nul" else b""))
    # Other formats have titles, ids and addresses.
    with open(hostile / "records.jsonl", "w") as file:
        for name, body in hostile_pages(trap).items():
            for copy in ["one", "two"]:
                record = {"id": f"{body[:200]}\"'><script>{copy}", "url": f"javascript:fetch('{trap}/url')//{copy}", "title": f"<script>fetch('{trap}/title')</script>\" onmouseover=\"x {name}", "text": f"{body} {copy}"}
                file.write(json.dumps(record) + "\n")
    ran = subprocess.run([LOOKALIKE, "dedup", "pages", "records.jsonl", "--output", "out", "--quiet"], cwd=hostile, capture_output=True, text=True)
    assert ran.returncode in (0, 3), ran.stderr
    return hostile / "out"


def test_nothing_on_a_hostile_page_runs_or_is_loaded(browser, trap, hostile):
    address, asked = trap
    result = make(hostile, address)
    directory = subprocess.Popen([LOOKALIKE, "view", str(result), "--no-open", "--listen", "127.0.0.1:0", "--coder", "<script>Ann"], cwd=hostile, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        base = directory.stdout.readline().strip()
        with browser.visit(base + "/clusters?least=1") as page:
            page.wait_until("!document.body.innerText.includes('Texts are being read')", seconds=60)
            clusters = page.run("[...document.querySelectorAll('.item')].map((item) => item.dataset.cluster)")
            assert len(clusters) >= 10
        views = ["/", "/clusters?least=1", "/tags", "/audit", "/clusters?q=%3Cscript%3E%22&site=%3Cscript%3E&least=1"]
        for cluster in clusters:
            views += [f"/clusters/{cluster}?q=%22%3E%3Cscript%3E", f"/original/{cluster}"]
        pairs = set()
        for path in views:
            with browser.visit(base + path) as page:
                title = page.run("document.title")
                assert title != "taken", path
                pairs |= set(page.run("[...document.querySelectorAll('[data-pair]')].map((link) => link.getAttribute('href'))"))
                overflow = page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert path.startswith("/original") or overflow <= 0, (path, overflow)
                # Ours have no script but our own, and no handler in the markup.
                if not path.startswith("/original"):
                    assert page.run("[...document.scripts].every((script) => script.src.endsWith('/assets/workbench.js'))"), path
                    assert page.run("[...document.querySelectorAll('*')].every((item) => [...item.attributes].every((attribute) => !attribute.name.startsWith('on')))"), path
        assert pairs
        for path in sorted(pairs):
            with browser.visit(base + path) as page:
                page.press("o")
                page.wait_until("[...document.querySelectorAll('iframe')].every((frame) => frame.src)")
                page.wait_until("performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/original/')).length >= 2")
                assert page.run("document.title") != "taken", path
        assert asked == []
    finally:
        directory.kill()
        directory.communicate()


def test_the_trap_is_asked_where_nothing_protects(browser, trap):
    """The test above could otherwise pass without looking."""
    address, asked = trap
    with browser.visit(address + "/start") as page:
        page.run(f"document.body.innerHTML = \"<img src='{address}/shown.png'>\"")
        page.wait_until("performance.getEntriesByType('resource').some((entry) => entry.name.endsWith('shown.png'))")
    assert "/shown.png" in asked


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    at = tmp_path_factory.mktemp("small")
    with open(at / "pages.jsonl", "w") as file:
        for name in "abcd":
            file.write(json.dumps({"id": name, "text": " ".join(WORDS * 4) + f" {name}"}) + "\n")
    subprocess.run([LOOKALIKE, "dedup", at / "pages.jsonl", "--output", at / "out", "--quiet"], check=True)
    return at / "out"


def test_other_sites_can_neither_look_nor_change(small):
    tag = {"tag": 1, "on": True, "cluster": 0}
    with viewing(small) as bench:
        own = bench.address
        host = own.removeprefix("http://")
        assert "4 pages" in bench.get("/clusters")
        # Names that resolve to this machine, and two names at once.
        bench.get("/clusters", code=403, Host="evil.example")
        connection_headers = {"Host": host, "Origin": "http://evil.example"}
        assert bench.raw("GET", "/clusters", headers=connection_headers)[0] == 403
        bench.post("/api/tag", tag, code=403, headers={"Origin": "http://evil.example"})
        bench.post("/api/tag", tag, code=403, headers={"Origin": "http://127.0.0.1:1"})
        bench.post("/api/tag", tag, code=403, headers={"Origin": "null"})
        bench.post("/api/tag", tag, code=403, headers={"Sec-Fetch-Site": "cross-site"})
        # A form cannot send this header.
        assert bench.raw("POST", "/api/tag", json.dumps(tag), {"Content-Type": "text/plain"})[0] == 403
        # A picture or a frame on another site's page; a link there is fine.
        assert bench.raw("GET", "/original/0", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"})[0] == 403
        assert bench.raw("GET", "/clusters", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"})[0] == 403
        assert bench.raw("GET", "/clusters", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})[0] == 200
        assert bench.get("/export/tags.csv").count("\n") == 1
        bench.post("/api/tag", tag, headers={"Origin": own, "Sec-Fetch-Site": "same-origin"})
        assert bench.get("/export/tags.csv").count("\n") == 5
        _, headers, _ = bench.raw("GET", "/clusters")
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        policy = bench.raw("GET", "/original/0")[1]["Content-Security-Policy"]
        assert policy.startswith("sandbox; default-src 'none'") and "script" not in policy


def test_others_need_a_token(small, tmp_path):
    refused = subprocess.run([LOOKALIKE, "view", small, "--no-open", "--listen", "0.0.0.0:0"], capture_output=True, text=True)
    assert refused.returncode == 2 and "--tokens" in refused.stderr
    tokens = tmp_path / "tokens"
    tokens.write_text("write aaaaaaaaaaaaaaaa\nread bbbbbbbbbbbbbbbb\n")
    tag = {"tag": 2, "on": True, "cluster": 0}
    with viewing(small, "--tokens", tokens) as bench:
        assert "Sign in" in bench.get("/clusters", code=401)
        bench.post("/api/tag", tag, code=401)
        bench.post("/api/sign-in", {"token": "cccccccccccccccc"}, code=401)
        status, headers, _ = bench.raw("POST", "/api/sign-in", json.dumps({"token": "bbbbbbbbbbbbbbbb"}), {"X-Lookalike": "1"})
        assert status == 200 and "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
        cookie = headers["Set-Cookie"].split(";")[0]
        assert "4 pages" in bench.get("/clusters", Cookie=cookie)
        bench.post("/api/tag", tag, code=403, headers={"Cookie": cookie})
        bench.post("/api/tag", tag, headers={"Authorization": "Bearer aaaaaaaaaaaaaaaa"})


def test_what_is_wrong_is_said(small, tmp_path):
    ran = subprocess.run([LOOKALIKE, "view", tmp_path, "--no-open"], capture_output=True, text=True)
    assert ran.returncode != 0 and "is not a complete result" in ran.stderr
    with viewing(small) as bench:
        taken = subprocess.run([LOOKALIKE, "view", small, "--no-open", "--listen", bench.address.removeprefix("http://")], capture_output=True, text=True)
        assert taken.returncode == 2 and "cannot be used" in taken.stderr
        second = subprocess.run([LOOKALIKE, "view", small, "--no-open", "--listen", "127.0.0.1:0"], capture_output=True, text=True)
        assert second.returncode != 0 and "already shown by another" in second.stderr
        assert "no such cluster" in bench.get("/clusters/99", code=404)
        bench.get("/nothing", code=404)
        bench.get("/pair/0/99", code=404)
        bench.get("/page?id=nobody", code=404)
        bench.post("/api/tag", {"tag": 99, "on": True, "cluster": 0}, code=404)
        bench.post("/api/tags", {"do": "put_tag", "tag": None, "set": 1, "label": "x", "colour": 0, "key": "j"}, code=422)
        assert "No cluster matches" in bench.get("/clusters?q=%21%3F")
        for path in ["/clusters?page=999999999999", "/clusters?least=abc&most=-1&sort=%27;drop", "/clusters?page=-5&kind=x&tag=%27"]:
            bench.get(path)


def test_pages_that_are_gone_are_said_to_be(tmp_path):
    pages = tmp_path / "pages.jsonl"
    with open(pages, "w") as file:
        for name in "ab":
            file.write(json.dumps({"id": name, "text": " ".join(WORDS * 4) + f" {name}"}) + "\n")
    subprocess.run([LOOKALIKE, "dedup", pages, "--output", tmp_path / "out", "--quiet"], check=True)
    pages.unlink()
    with viewing(tmp_path / "out") as bench:
        while "Texts are being read" in (shown := bench.get("/clusters/0")):
            pass
        assert "Texts cannot be searched or shown" in shown and "pages.jsonl" in shown
        assert "pages.jsonl" in bench.get("/pair/0/1", code=422)
        bench.post("/api/tag", {"tag": 1, "on": True, "cluster": 0})
