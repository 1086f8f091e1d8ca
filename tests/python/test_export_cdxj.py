"""The index of a web archive with the groups of a result, made by the indexer that pywb's users have."""

import io
import json
import subprocess
import sys

import pytest
from service import lookalike, text
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

STORY = text(1, 300)
PAGES = {
    "http://a.org/story": f"<p>{STORY}</p>",
    "http://a.org/story?session=17": f"<p>{STORY}</p>",
    "http://b.org/copied": f"<h1>The news</h1><p>{STORY} and a word more</p>",
    "http://a.org/other": f"<p>{text(2, 300)}</p>",
    "http://a.org/image": None,
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """A result, and the index of its archive."""
    root = tmp_path_factory.mktemp("archive")
    (root / "crawl").mkdir()
    path = root / "crawl" / "crawl.warc.gz"
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for minute, (url, html) in enumerate(PAGES.items()):
            kind = "text/html" if html else "image/png"
            headers = StatusAndHeaders("200 OK", [("Content-Type", kind)], protocol="HTTP/1.1")
            body = io.BytesIO((html or "an image").encode())
            date = {"WARC-Date": f"2026-03-01T10:{minute:02}:00Z"}
            writer.write_record(writer.create_warc_record(url, "response", payload=body, http_headers=headers, warc_headers_dict=date))
    indexed = subprocess.run(
        [sys.executable, "-m", "cdxj_indexer.main", "--sort", path], capture_output=True, text=True, cwd=root, check=True
    )
    (root / "index.cdxj").write_text("!meta 0 {}\n" + indexed.stdout)
    ran = lookalike("dedup", path, "--output", root / "out")
    assert ran.returncode == 0, ran.stderr
    return root


def lines(output):
    """The lines by URL: what stands in front, and the object."""
    found = {}
    for line in output.splitlines():
        key, timestamp, fields = line.split(" ", 2)
        if key != "!meta":
            found[json.loads(fields)["url"]] = (key, timestamp, json.loads(fields))
    return found


def test_every_line_gets_its_group(archive):
    exported = lookalike("export-cdxj", archive / "out", archive / "index.cdxj")
    assert exported.returncode == 0, exported.stderr
    assert "2 kept, 2 dropped, 1 not in the result" in exported.stderr
    before, after = lines((archive / "index.cdxj").read_text()), lines(exported.stdout)
    assert list(before) == list(after) and exported.stdout.startswith("!meta 0 {}\n")
    for url, (key, timestamp, fields) in after.items():
        own = {name: value for name, value in fields.items() if not name.startswith("lookalike_")}
        assert (key, timestamp, own) == before[url], "what was there is unchanged"
        assert all(isinstance(value, str) for value in fields.values()), "pywb wants texts"
    story = after["http://a.org/story"][2]
    assert (story["lookalike_kept"], story["lookalike_kind"]) == ("true", "representative") and "lookalike_url" not in story
    for url, kind in [("http://a.org/story?session=17", "exact"), ("http://b.org/copied", "near")]:
        fields = after[url][2]
        assert (fields["lookalike_kept"], fields["lookalike_cluster"]) == ("false", story["lookalike_cluster"])
        assert (fields["lookalike_url"], fields["lookalike_timestamp"]) == ("http://a.org/story", "20260301100000")
        assert fields["lookalike_kind"] == kind and 0.7 <= float(fields["lookalike_similarity"]) <= 1
    assert after["http://a.org/other"][2]["lookalike_kind"] == "unique"
    assert after["http://a.org/image"][2] == before["http://a.org/image"][2]


def test_again_is_the_same(archive, tmp_path):
    first, second = tmp_path / "first.cdxj", tmp_path / "second.cdxj"
    counted = lookalike("export-cdxj", archive / "out", archive / "index.cdxj", "--output", first, "--json")
    counts = json.loads(counted.stdout)
    assert {name: counts[name] for name in ["written", "kept", "dropped", "other"]} == {"written": 5, "kept": 2, "dropped": 2, "other": 1}
    assert lookalike("export-cdxj", archive / "out", first, "--output", second).returncode == 0
    assert lines(second.read_text()) == lines(first.read_text())
    refused = lookalike("export-cdxj", archive / "out", first, "--output", second)
    assert refused.returncode == 1 and "second.cdxj" in refused.stderr, "nothing is overwritten"


def test_kept_and_dropped_lines_are_unchanged(archive):
    index = (archive / "index.cdxj").read_text().splitlines()
    kept = lookalike("export-cdxj", archive / "out", archive / "index.cdxj", "--only", "kept").stdout.splitlines()
    dropped = lookalike("export-cdxj", archive / "out", archive / "index.cdxj", "--only", "dropped").stdout.splitlines()
    assert set(kept) | set(dropped) == set(index) and not set(kept) & set(dropped)
    assert set(lines("\n".join(dropped))) == {"http://a.org/story?session=17", "http://b.org/copied"}


@pytest.mark.parametrize(
    "index, reason",
    [
        ('org,a)/ 20260301100000 {"url": "http://a.org/", "filename": "other.warc.gz", "offset": "0"}\n', "names no capture of this result"),
        ("org,a)/ 20260301100000 http://a.org/ text/html 200\n", "line 1 is not a line of a CDXJ file"),
    ],
    ids=["other archives", "not CDXJ"],
)
def test_wrong_indexes_are_refused(archive, tmp_path, index, reason):
    (tmp_path / "wrong.cdxj").write_text(index)
    refused = lookalike("export-cdxj", archive / "out", tmp_path / "wrong.cdxj")
    assert refused.returncode != 0 and reason in refused.stderr
