"""Objects in stores are read like files: S3 against a local server, the web against one that breaks off."""

import functools
import gzip
import http.server
import json
import os
import subprocess
import threading
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

LOOKALIKE = os.environ["LOOKALIKE"]
BUCKET = "crawl"


def page(number: int) -> str:
    """A text of its own; every third is a copy of the one before it."""
    topic = number - 1 if number % 3 == 2 else number
    return " ".join(f"w{topic}x{word}" for word in range(80))


def warc_record(number: int) -> bytes:
    body = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><p>{page(number)}</p></html>".encode()
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n"
        f"WARC-Target-URI: http://a.example/{number}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body + b"\r\n\r\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """The same pages in four formats."""
    root = tmp_path_factory.mktemp("files")
    lines = "".join(json.dumps({"id": f"l{n}", "text": page(n)}) + "\n" for n in range(300))
    (root / "lines.jsonl").write_text(lines)
    (root / "packed.jsonl.gz").write_bytes(gzip.compress(lines.replace('"l', '"g').encode()))
    (root / "crawl.warc.gz").write_bytes(b"".join(gzip.compress(warc_record(n)) for n in range(300)))
    table = pa.table({"id": [f"p{n}" for n in range(300)], "text": [page(n) for n in range(300)]})
    pq.write_table(table, root / "rows.parquet")
    return root


def dedup(inputs: list[str], output: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    command = [LOOKALIKE, "dedup", *inputs, "--output", str(output), "--replace"]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})


def clusters(output: Path) -> list[tuple]:
    rows = pq.read_table(output / "clusters.parquet").to_pylist()
    return sorted((row["id"], row["kept_id"], row["kind"], row["similarity"]) for row in rows)


@pytest.fixture(scope="module")
def store(files):
    """The files in a bucket, and the environment that leads to it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    client = boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=BUCKET)
    for file in files.iterdir():
        client.upload_file(str(file), BUCKET, f"2024/{file.name}")
    client.put_object(Bucket=BUCKET, Key="2024/logo.png", Body=b"png")
    yield environment
    server.stop()


def test_a_bucket_gives_what_the_files_give(files, store, tmp_path):
    local = dedup([str(files)], tmp_path / "local")
    assert local.returncode == 0, local.stderr
    for name, inputs in {
        "folder": [f"s3://{BUCKET}/2024/"],
        "pattern": [f"s3://{BUCKET}/2024/*.jsonl", f"s3://{BUCKET}/2024/*.gz", f"s3://{BUCKET}/2024/rows.parquet"],
        "mixed": [f"s3://{BUCKET}/2024/lines.jsonl", f"s3://{BUCKET}/2024/packed.jsonl.gz"]
        + [str(files / "crawl.warc.gz"), str(files / "rows.parquet")],
    }.items():
        remote = dedup(inputs, tmp_path / name, store)
        assert remote.returncode == 0, remote.stderr
        found = clusters(tmp_path / name)
        assert [row[0] for row in found] == [row[0] for row in clusters(tmp_path / "local")], name
        # The order of sources differs with their names; what is kept is one of each topic all the same.
        assert sum(row[0] == row[1] for row in found) == sum(row[0] == row[1] for row in clusters(tmp_path / "local"))
    kept = tmp_path / "folder" / "kept"
    assert sorted(file.name for file in kept.iterdir()) == sorted(file.name for file in files.iterdir())


def test_a_result_from_a_store_can_be_clustered_again_and_compared(files, store, tmp_path):
    output = tmp_path / "out"
    assert dedup([f"s3://{BUCKET}/2024/crawl.warc.gz"], output, store).returncode == 0
    environment = {**os.environ, **store}
    again = [LOOKALIKE, "recluster", str(output), "--threshold", "0.9", "--output", str(tmp_path / "again")]
    assert subprocess.run(again, env=environment).returncode == 0
    assert clusters(tmp_path / "again") == clusters(output)
    compare = [LOOKALIKE, "compare", "urn:uuid:1", "urn:uuid:2", "--in", str(output), "--json"]
    said = subprocess.run(compare, env=environment, capture_output=True, text=True)
    assert said.returncode == 0 and json.loads(said.stdout)["identical"], said.stderr


def test_what_is_not_there_is_told(store, tmp_path):
    for name in ["2024/nothing.warc.gz", "1999/", "2024/*.csv"]:
        ran = dedup([f"s3://{BUCKET}/{name}"], tmp_path / "out", store)
        assert ran.returncode == 1 and f"s3://{BUCKET}/{name}" in ran.stderr, ran.stderr
        assert "there is no such object" in ran.stderr or "not found" in ran.stderr.lower(), ran.stderr
    ran = dedup(["s3://no-such-bucket/x.jsonl"], tmp_path / "out", store)
    assert ran.returncode == 1 and "s3://no-such-bucket/x.jsonl" in ran.stderr


class BreakingHandler(http.server.SimpleHTTPRequestHandler):
    """Serves ranges, and breaks every third answer off in the middle."""

    answers = 0

    def log_message(self, *_):
        pass

    def do_GET(self):
        data = Path(self.translate_path(self.path)).read_bytes()
        start, end = 0, len(data)
        wanted = self.headers.get("Range")
        if wanted:
            first, last = wanted.removeprefix("bytes=").split("-")
            start, end = int(first), int(last) + 1 if last else len(data)
        body = data[start:end]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Fri, 17 May 2024 00:00:00 GMT")
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.end_headers()
        type(self).answers += 1
        if type(self).answers % 3 == 0 and len(body) > 1000:
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)


def test_a_connection_that_breaks_off_is_taken_up_again(files, tmp_path):
    handler = functools.partial(BreakingHandler, directory=str(files))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for name in ["crawl.warc.gz", "lines.jsonl", "packed.jsonl.gz", "rows.parquet"]:
            url = f"http://127.0.0.1:{server.server_port}/{name}"
            ran = dedup([url], tmp_path / "web")
            assert ran.returncode == 0, ran.stderr
            assert dedup([str(files / name)], tmp_path / "local").returncode == 0
            assert clusters(tmp_path / "web") == clusters(tmp_path / "local"), name
        assert BreakingHandler.answers > 3
    finally:
        server.shutdown()
