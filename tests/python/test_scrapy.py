"""The Scrapy middleware, with real Scrapy, on a site with session ids, print versions and a calendar without an end."""

import http.server
import json
import subprocess
import sys
import threading

import pytest
from service import service, text

SPIDER = """
import sys, json
import scrapy
from scrapy.crawler import CrawlerProcess

class Spider(scrapy.Spider):
    name = "all"
    handle_httpstatus_list = [404]

    async def start(self):
        yield scrapy.Request(sys.argv[1], errback=self.failed)

    def parse(self, response):
        answer = response.meta.get("lookalike")
        yield {"url": response.url, "verdict": answer and answer.verdict, "of": answer and [match.id for match in answer.of]}
        for link in getattr(response, "css", lambda _: [])("a::attr(href)"):
            skip = {"lookalike": False} if "skipped" in link.get() else {}
            yield response.follow(link.get(), errback=self.failed, meta=skip)

    def failed(self, failure):
        yield {"url": failure.request.url, "failed": failure.type.__name__}

settings = json.loads(sys.argv[2])
process = CrawlerProcess({
    "DOWNLOADER_MIDDLEWARES": {"lookalike.client.scrapy.LookalikeMiddleware": 50},
    "FEEDS": {sys.argv[3]: {"format": "jsonlines"}},
    "CLOSESPIDER_PAGECOUNT": 200, "TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "INFO", "CONCURRENT_REQUESTS": 4,
    **settings,
})
crawler = process.create_crawler(Spider)
process.crawl(crawler)
process.start()
print(json.dumps({key: value for key, value in crawler.stats.get_stats().items() if key.startswith("lookalike")}))
"""


class Site(http.server.BaseHTTPRequestHandler):
    """Five stories, each also for print and with a session in its URL; a calendar; what is not a page."""

    fetched = []

    def do_GET(self):
        Site.fetched.append(self.path)
        place, _, rest = self.path.partition("?")
        kind, status, links = "text/html; charset=utf-8", 200, []
        if place == "/":
            body = text(0, 300)
            links = [f"/story/{number}" for number in range(5)] + ["/calendar?day=1", "/data.json", "/missing", "/moved", "/skipped"]
        elif place.startswith("/story/"):
            body, links = text(int(place.removeprefix("/story/")) + 1, 300), [f"{place}?print=1", f"{place}?session=17"]
            if rest in ("session=17", "session=18"):
                links.append(f"{place}?session={int(rest.removeprefix('session=')) + 1}")
        elif place == "/calendar":
            body, links = text(99, 300), [f"/calendar?day={int(rest.removeprefix('day=')) + 1}"]
        elif place == "/data.json":
            kind, body = "application/json", "{}"
        elif place == "/moved":
            self.send_response(302)
            self.send_header("Location", "/target")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        elif place == "/target":
            body = text(50, 300)
        elif place == "/skipped":
            body = text(1, 300)
        else:
            status, body = 404, text(0, 300)
        anchors = " ".join(f'<a href="{link}">the</a>' for link in links)
        page = f"<html><title>{place}</title><body><p>{body}</p>{anchors}</body></html>" if "html" in kind else body
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Site.fetched = []
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def crawl(tmp_path, site, name, **settings):
    """Items, statistics and the log of a crawl."""
    (tmp_path / "spider.py").write_text(SPIDER)
    out = tmp_path / f"{name}.jsonl"
    command = [sys.executable, tmp_path / "spider.py", f"{site}/", json.dumps(settings), out]
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert ran.returncode == 0, ran.stderr[-3000:]
    items = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return items, json.loads(ran.stdout.splitlines()[-1]), ran.stderr


def test_seen_pages_are_dropped_and_traps_left(tmp_path, site):
    with service(tmp_path / "seen") as running:
        settings = {"LOOKALIKE_URL": f"http://{running.host}", "LOOKALIKE_SEEN": "drop"}
        items, stats, _ = crawl(tmp_path, site, "first", **settings)
        got = {item["url"].removeprefix(site) for item in items if "failed" not in item}
        stories = {item for item in got if item.startswith("/story/")}
        # Of a story, its copies and the calendar, whichever came first is left.
        assert len(stories) == 5 and len({story.partition("?")[0] for story in stories}) == 5
        assert got - stories == {"/", "/calendar?day=1", "/data.json", "/missing", "/target", "/skipped"}
        assert sum("calendar" in path for path in Site.fetched) == 2, "the trap is left after one more page"
        assert not any("session=18" in path for path in Site.fetched), "nor are sessions followed"
        dropped = {item["url"] for item in items if item.get("failed") == "SeenPage"}
        assert len(dropped) == 11 == stats["lookalike/dropped"]
        assert stats["lookalike/new"] == 8 and "lookalike/failed" not in stats
        # Only what was asked about has an answer: neither JSON, nor an error page, nor what the spider excluded.
        unasked = {item["url"].removeprefix(site) for item in items if not item.get("verdict") and "failed" not in item}
        assert unasked == {"/data.json", "/missing", "/skipped"}

        # A second crawl finds every page again: it is like itself, and not dropped.
        items, stats, _ = crawl(tmp_path, site, "second", **settings)
        assert {item["url"].removeprefix(site) for item in items if item.get("verdict")} == (got - {"/data.json", "/missing", "/skipped"})
        # Print versions have one more link than what is stored.
        assert stats["lookalike/exact"] + stats.get("lookalike/near", 0) == 19 and stats["lookalike/dropped"] == 11


def test_seen_pages_are_marked(tmp_path, site):
    with service(tmp_path / "seen") as running:
        running.call("PUT", "/v1/collections/news", {})
        settings = {"LOOKALIKE_URL": f"http://{running.host}", "LOOKALIKE_COLLECTION": "news", "CLOSESPIDER_PAGECOUNT": 60}
        items, stats, _ = crawl(tmp_path, site, "marked", **settings)
        calendar = [item for item in items if "calendar" in item["url"]]
        assert len(calendar) > 2, "the spider decides, and this one goes on"
        assert [item["verdict"] for item in calendar] == ["new"] + ["exact"] * (len(calendar) - 1)
        assert {tuple(item["of"]) for item in calendar[1:]} == {(f"{site}/calendar?day=1",)}
        assert "lookalike/dropped" not in stats
        assert running.call("GET", "/v1/stats")[1]["rows"] == 0, "it is in another collection"


def test_a_service_that_is_gone(tmp_path, site):
    settings = {"LOOKALIKE_URL": "http://127.0.0.1:1", "LOOKALIKE_RETRIES": 0, "CLOSESPIDER_PAGECOUNT": 20}
    items, stats, log = crawl(tmp_path, site, "passed", **settings)
    assert any("/story/1" in item["url"] for item in items) and stats["lookalike/failed"] > 5
    assert "no answer from http://127.0.0.1:1" in log
    items, stats, _ = crawl(tmp_path, site, "dropped", LOOKALIKE_ON_ERROR="drop", **settings)
    assert items == [{"url": f"{site}/", "failed": "IgnoreRequest"}] and stats["lookalike/failed"] == 1


def test_wrong_settings_are_refused(tmp_path, site):
    (tmp_path / "spider.py").write_text(SPIDER)
    command = [sys.executable, tmp_path / "spider.py", site, json.dumps({"LOOKALIKE_SEEN": "forget"}), tmp_path / "out.jsonl"]
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert "LOOKALIKE_SEEN must be one of mark, drop, not 'forget'" in ran.stderr and Site.fetched == []
