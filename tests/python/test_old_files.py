"""Indexes that released versions of the service left, served by this one."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from service import service

FIXTURES = Path(__file__).parents[2] / "crates" / "lookalike-cli" / "tests" / "fixtures"
RELEASES = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("index", ["pages", "served", "killed"])
def test_everything_stored_is_known(tmp_path, release, index):
    shutil.copytree(FIXTURES / release / "indexes", tmp_path / "indexes")
    subprocess.run(["tar", "--zstd", "-xf", f"indexes/{index}.tar.zst"], cwd=tmp_path, check=True)
    pages = [json.loads(line) for line in gzip.open(FIXTURES / release / "pages.jsonl.gz")]
    verdicts = {}
    for _ in range(2):  # again after it was stopped by this version
        with service(tmp_path / "indexes" / index) as running:
            for page in pages:
                answer = running.check({"url": "http://elsewhere.example/", "html": page["html"]})
                verdicts[page["id"]] = (answer["verdict"], [near["id"] for near in answer["of"]])
            if index != "pages":
                only = running.call("GET", "/v1/collections/other/pages/only")
                assert only[0] == 200, only
            running.stop()
        # An empty page is like nothing; that of the tram was removed.
        # `index build` stores no pages without a fingerprint.
        new = {"metro-now/empty.html", "metro-now/tram.html"} if index != "pages" else {"metro-now/empty.html", "metro-now/error.html"}
        assert verdicts == {page["id"]: ("new", []) if page["id"] in new else ("exact", [page["id"]]) for page in pages}
