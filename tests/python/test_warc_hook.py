"""The example that writes WARC files: read back with warcio, and by `lookalike dedup`."""

import http.server
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet
from service import lookalike, service, text
from warcio.archiveiterator import ArchiveIterator

WRITER = Path(__file__).parents[2] / "examples" / "crawler" / "warc_writer.py"
STORY = text(1, 300)


class Site(http.server.BaseHTTPRequestHandler):
    """A story; the same bytes with a session; for print, with other markup; changed a little; another story; an image."""

    pages = {
        "/story": f"<html><body><p>{STORY}</p></body></html>",
        "/story?session=17": f"<html><body><p>{STORY}</p></body></html>",
        "/story?print=1": f"<html><body><div><p>{STORY}</p></div></body></html>",
        "/changed": f"<html><body><p>{STORY} and a word more</p></body></html>",
        "/other": f"<html><body><p>{text(2, 300)}</p></body></html>",
        "/image": "not really an image",
        "/image?again": "not really an image",
    }

    def do_GET(self):
        body = self.pages[self.path].encode()
        self.send_response(200)
        self.send_header("Content-Type", "image/png" if "image" in self.path else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_copies_become_revisits_and_near_copies_are_marked(tmp_path):
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{site.server_port}"
    archive = tmp_path / "crawl.warc.gz"
    with service(tmp_path / "seen") as running:
        command = [sys.executable, WRITER, archive, *(base + path for path in Site.pages), "--service", f"http://{running.host}"]
        written = subprocess.run([*map(str, command)], capture_output=True, text=True)
        assert written.returncode == 0, written.stderr
    site.shutdown()
    said = [line.split()[:2] for line in written.stdout.splitlines()]
    assert said == [
        ["response", "new"],
        ["revisit", "exact"],
        ["response", "exact"],
        ["response", "near"],
        ["response", "new"],
        ["response", "-"],
        ["revisit", "-"],
    ]

    records = {}
    with archive.open("rb") as file:
        # It checks the digests of blocks and payloads.
        for record in ArchiveIterator(file, check_digests="raise"):
            records[record.rec_headers["WARC-Target-URI"].removeprefix(base)] = (
                record.rec_type,
                dict(record.rec_headers.headers),
                record.http_headers and record.http_headers.get_statuscode(),
                record.content_stream().read(),
            )
    assert list(records) == list(Site.pages)
    first = records["/story"][1]
    kind, headers, status, body = records["/story?session=17"]
    assert (kind, status, body) == ("revisit", "200", b"")
    assert headers["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert headers["WARC-Refers-To"] == first["WARC-Record-ID"]
    assert headers["WARC-Refers-To-Target-URI"] == base + "/story"
    assert headers["WARC-Refers-To-Date"] == first["WARC-Date"]
    assert headers["WARC-Payload-Digest"] == first["WARC-Payload-Digest"]
    for path, verdict in [("/story?print=1", "exact"), ("/changed", "near")]:
        kind, headers, _, body = records[path]
        assert (kind, body.decode()) == ("response", Site.pages[path])
        assert (headers["Lookalike-Verdict"], headers["Lookalike-Of"]) == (verdict, base + "/story")
        assert 0.6 < float(headers["Lookalike-Similarity"]) <= 1
    assert "Lookalike-Verdict" not in first and "Lookalike-Verdict" not in records["/other"][1]

    # The archive is a corpus: the revisit is a copy of the page that it refers to.
    result = tmp_path / "out"
    ran = lookalike("dedup", archive, "--output", result)
    assert ran.returncode == 0, ran.stderr
    pages = {row["url"].removeprefix(base): row for row in pyarrow.parquet.read_table(result / "pages.parquet").to_pylist()}
    assert set(pages) == {path for path in Site.pages if "image" not in path}
    story = pages["/story"]["id"]
    assert pages["/story?session=17"]["revisit_of"] == story
    kept = {row["id"]: row["kept_id"] for row in pyarrow.parquet.read_table(result / "clusters.parquet").to_pylist()}
    of = {path: kept[page["id"]] for path, page in pages.items()}
    assert of["/story"] == of["/story?session=17"] == of["/story?print=1"] == of["/changed"] != of["/other"]
