"""The example crawler, on a site with a trap: a calendar of endless links to the same page."""

import http.server
import subprocess
import sys
import threading
from pathlib import Path

from service import service, text

CRAWLER = Path(__file__).parents[2] / "examples" / "crawler" / "crawl.py"


class Site(http.server.BaseHTTPRequestHandler):
    """Ten stories, each also for print and with a session in its URL, and a trap."""

    fetched = []

    def do_GET(self):
        Site.fetched.append(self.path)
        place, _, rest = self.path.partition("?")
        if place == "/":
            body, links = text(0, 300), [f"/story/{number}" for number in range(10)] + ["/calendar?day=1"]
        elif place.startswith("/story/"):
            number = int(place.removeprefix("/story/"))
            body, links = text(number + 1, 300), [f"{place}?print=1", f"{place}?session=17", "/"]
            if rest:
                # Only the first page of its kind is followed: nobody comes here.
                links.append(f"/deeper{place}")
        elif place == "/calendar":
            body, links = text(99, 300), [f"/calendar?day={int(rest.removeprefix('day=')) + 1}"]
        else:
            body, links = text(1000 + len(Site.fetched), 300), []
        anchors = " ".join(f'<a href="{link}">the</a>' for link in links)
        page = f"<html><title>{place}</title><body><p>{body}</p>{anchors}</body></html>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


def test_it_does_not_follow_what_it_has_seen(tmp_path):
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    start = f"http://127.0.0.1:{site.server_port}/"
    with service(tmp_path / "seen") as running:
        command = [sys.executable, CRAWLER, start, "--service", f"http://{running.host}", "--pages", "200"]
        crawled = subprocess.run(command, capture_output=True, text=True)
        assert crawled.returncode == 0, crawled.stderr
        lines = crawled.stdout.splitlines()
        new = [line for line in lines if line.startswith("new")]
        assert len(new) == 12, "the start, ten stories, the calendar\n" + crawled.stdout
        # The trap is entered once more and left; copies are not followed.
        assert sum("calendar" in path for path in Site.fetched) == 2
        assert not any("deeper" in path for path in Site.fetched)
        assert len(lines) == 12 + 20 + 1
        again = subprocess.run(command, capture_output=True, text=True)
        assert len(again.stdout.splitlines()) == len(lines)
        # Print versions have one more link, and were not stored the first time either.
        verdicts = [line.split()[0] for line in again.stdout.splitlines()]
        assert set(verdicts) == {"exact", "near"} and verdicts.count("near") <= 21, "all of it is known"
    site.shutdown()
