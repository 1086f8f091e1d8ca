"""The service does what its description says: schemathesis sends what fits it and what does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from service import service

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.mark.parametrize(
    "chosen",
    [
        ["--exclude-path-regex", "batch$", "--checks", f"{CHECKS},negative_data_rejection"],
        # A batch is accepted as a whole; a line that is wrong is answered with a problem of its own.
        ["--include-path-regex", "batch$", "--checks", CHECKS],
    ],
    ids=["all but batches", "batches"],
)
def test_requests_made_from_the_description(tmp_path, chosen):
    with service(tmp_path / "seen", "--backups", tmp_path / "copies") as running:
        running.call("PUT", "/v1/collections/news", {})
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"http://{running.host}/openapi.json", *chosen]
        # One worker: several trip over one another in the parser of Python 3.11.
        command += ["--max-examples", "40", "--seed", "7", "--workers", "1", "--no-color"]
        hooks = {"SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("schemathesis_hooks.py"))}
        tried = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **hooks})
        assert tried.returncode == 0, tried.stdout[-6000:] + tried.stderr[-2000:]
        assert running.process.poll() is None and running.call("GET", "/readyz")[0] == 200
