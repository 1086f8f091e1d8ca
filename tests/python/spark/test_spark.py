"""The main job on Spark: the result of one machine, whatever dies on the way."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from results import NEWSROOM, assert_same, rows

import lookalike
from lookalike import spark as lookalike_spark

METHODS = {
    "the default": ("minhash", {}),
    "whole pages": ("minhash", {"content": "page"}),
    "simhash": ("simhash", {}),
    "combined": ("combined", {}),
    "spotsigs": ("spotsigs", {}),
}
#: What else decides, and has a way of its own on a cluster.
SETTINGS = {
    "chains, the longest kept": ("minhash", {"cluster": "components", "keep": "longest", "content": "core"}),
    "crowds of five": ("minhash", {"bucket_limit": 4}),
    "crowds of five, by features, within languages": ("spotsigs", {"bucket_limit": 4, "within": "language"}),
    "parts of pages": ("minhash", {"measure": "containment", "length_ratio": 0.2}),
    "copies alone": ("minhash", {"exact_only": True}),
}


def both(spark, source, directory: Path, method: str, settings: dict, **more) -> int:
    """Runs a job on one machine and on the cluster; returns the number of pairs."""
    lookalike.dedup(source, output=directory / "one", method=method, no_kept=True, **more, **settings)
    lookalike_spark.dedup(spark, source, output=directory / "many", method=method, **more, **settings)
    return assert_same(directory / "one", directory / "many")


@pytest.mark.parametrize("name", METHODS)
def test_the_newsroom(spark, tmp_path, name):
    assert both(spark, str(NEWSROOM), tmp_path, *METHODS[name]) > 5


@pytest.mark.parametrize("name", [name for name in METHODS if name != "whole pages"])
def test_a_giant_key_and_empty_pages(spark, crowded, tmp_path, name):
    assert both(spark, str(crowded), tmp_path, *METHODS[name]) > 300
    summary = json.loads((tmp_path / "many/summary.json").read_text())
    assert summary["kinds"]["empty"] == 20_000
    assert summary["skipped"] == {"bad_json": 4}
    assert skipped(tmp_path / "one") == skipped(tmp_path / "many")
    expected = json.loads((tmp_path / "one/summary.json").read_text())
    same = ("config_hash", "pages", "kept", "dropped", "kinds", "identity_sets", "pairs", "near_misses", "clusters", "largest_cluster")
    assert {key: summary[key] for key in same} == {key: expected[key] for key in same}
    assert summary["capped_buckets"] == expected["capped_buckets"]
    if name in ("the default", "spotsigs"):
        assert summary["capped"], "there is a bucket that is too full"


@pytest.mark.parametrize("name", METHODS if os.environ.get("LOOKALIKE_SPARK_ALL") else ["the default"])
def test_the_installation_guide(spark, install_guide, tmp_path, name):
    assert both(spark, str(install_guide), tmp_path, *METHODS[name]) > 300


@pytest.mark.parametrize("name", SETTINGS)
def test_other_settings(spark, tmp_path, name):
    both(spark, str(NEWSROOM), tmp_path, *SETTINGS[name])


def test_archives_with_revisits(spark, tmp_path):
    assert both(spark, archives(tmp_path), tmp_path, "minhash", {}) >= 1
    pages = rows(tmp_path / "many", "pages")
    assert [page["revisit_of"] for page in pages if page["revisit_of"]] == ["urn:uuid:0", "urn:uuid:0"]


def archives(directory: Path) -> list[Path]:
    """Two archives; the second has revisits of a page of the first, one of them of a revisit, and one of nothing."""
    story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 8

    def record(number: int, kind: str, body: str, more: str = "") -> bytes:
        http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}"
        head = (
            f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nWARC-Target-URI: http://a.example/{number}\r\n"
            f"WARC-Date: 2026-01-0{number + 1}T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n{more}"
            f"Content-Length: {len(http)}\r\n\r\n"
        )
        return (head + http + "\r\n\r\n").encode()

    profile = "WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n"
    refers = profile + "WARC-Refers-To: <urn:uuid:{}>\r\n"
    first = record(0, "response", f"<html><p>{story}</html>") + record(1, "response", f"<html><p>{story} And a photo.</html>")
    second = (
        record(2, "revisit", "", refers.format(0)) + record(3, "revisit", "", refers.format(2)) + record(4, "revisit", "", refers.format(9))
    )
    paths = [directory / "a.warc", directory / "b.warc"]
    for path, content in zip(paths, (first, second)):
        path.write_bytes(content)
    return paths


def test_a_large_file_is_divided(spark, tmp_path):
    """Lines are numbered as in one reading: those without an id are called by their numbers."""
    chosen = random.Random(5)
    words = [f"w{number}" for number in range(3000)]
    with open(tmp_path / "large.jsonl", "w") as file:
        for number in range(6000):
            if number % 3 == 0:
                story = " ".join(chosen.choice(words) for _ in range(2300))
            file.write(json.dumps({"text": story + " again" * (number % 3)}) + "\n")
            if number % 100 == 7:
                file.write("\n")
            if number % 500 == 11:
                file.write("this is no JSON\n")
    assert (tmp_path / "large.jsonl").stat().st_size > 64 << 20
    assert both(spark, str(tmp_path / "large.jsonl"), tmp_path, "minhash", {}) > 1000
    assert skipped(tmp_path / "one") == skipped(tmp_path / "many") and len(skipped(tmp_path / "one")) == 12
    signatures = sorted((tmp_path / "many/_stages/1-signatures").glob("part-*.parquet"))
    assert len(signatures) == 3, "three tasks have read it"


def skipped(directory: Path) -> list[dict]:
    """What could not be used, in the order of the records."""
    records = [json.loads(line) for line in (directory / "skipped.jsonl").read_text().splitlines()]
    return sorted(records, key=lambda record: (record["source"], record["record"]))


def test_another_corpus(spark, tmp_path):
    files = sorted(path for path in NEWSROOM.rglob("*") if path.is_file())
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for path in files[::3]:
        (theirs / path.name).write_bytes(path.read_bytes())
    both(spark, str(NEWSROOM), tmp_path, "minhash", {}, against=str(theirs))
    against = rows(tmp_path / "many", "against")
    assert against and all(row["against_id"] and row["similarity"] > 0 for row in against)


def test_a_data_frame(spark, tmp_path):
    story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 5
    texts = {"a": "Something else altogether, which nobody else has written before.", "b": story, "c": story + "A photo.", "d": None}
    frame = spark.createDataFrame(list(texts.items()), "id string, text string")
    result = lookalike_spark.dedup(spark, frame, output=tmp_path / "many")
    lookalike.dedup(pa.table({"id": list(texts), "text": list(texts.values())}), output=tmp_path / "one", no_kept=True)
    # Only the file has another name.
    assert rows(tmp_path / "one", "clusters") == rows(tmp_path / "many", "clusters")
    assert [row["id"] for row in result.keep(frame).orderBy("id").collect()] == ["a", "b"]
    backwards = lookalike_spark.dedup(spark, frame.selectExpr("*", "-ascii(id) as place"), output=tmp_path / "back", order_by="place")
    assert {row["kept_id"] for row in backwards.clusters.where("id = 'b'").collect()} == {"c"}


def test_a_worker_dies_in_every_kind_of_stage(spark, cluster, killer, crowded, tmp_path):
    lookalike.dedup(str(crowded), output=tmp_path / "one", no_kept=True)
    # While pages are read; while keys are shuffled; while pairs are compared.
    for stage, begun in [("1-signatures", 1), ("11-candidates", 2), ("24-scores", 2)]:
        for attempt in range(5):
            # The stage may be over before anybody saw it.
            output = tmp_path / f"{stage}-{attempt}"
            thread = killer(stage, begun)
            lookalike_spark.dedup(spark, str(crowded), output=output)
            thread.finish()
            assert_same(tmp_path / "one", output)
            if thread.killed:
                break
        assert thread.killed, f"no worker was killed in {stage}"


def test_a_driver_dies_after_every_stage(tmp_path):
    lookalike.dedup(str(NEWSROOM), output=tmp_path / "one", no_kept=True)
    command = [sys.executable, "-m", "lookalike.spark", "dedup", "--input", str(NEWSROOM), "--output", str(tmp_path / "many")]
    done: set[str] = set()
    for stage in ("1-signatures", "3-frames", "7-pages", "8-sets", "11-candidates", "24-scores", "29-stars", "90-clusters", None):
        run = subprocess.Popen([*command, "--master", "local[2]"], stderr=subprocess.PIPE, text=True, start_new_session=True)
        said = set()
        for line in run.stderr:
            name, colon, what = line.rpartition("\r")[2].strip().partition(": ")
            if colon and name[:1].isdigit():
                said.add(name)
                assert (what == "done before") == (name in done), line
                done.add(name)
                if name == stage:
                    os.killpg(run.pid, signal.SIGKILL)
                    break
        code = run.wait()
        run.stderr.close()
        assert code == (0 if stage is None else -signal.SIGKILL)
    assert_same(tmp_path / "one", tmp_path / "many")


def test_what_the_output_of_another_job_says(spark, tmp_path):
    lookalike_spark.dedup(spark, str(NEWSROOM), output=tmp_path / "out", exact_only=True)
    with pytest.raises(lookalike_spark.StageError, match="holds the work of another job"):
        lookalike_spark.dedup(spark, str(NEWSROOM), output=tmp_path / "out", method="simhash")
    with pytest.raises(lookalike.LookalikeError, match="goes through the pages one by one"):
        lookalike_spark.dedup(spark, str(NEWSROOM), output=tmp_path / "other", method="spotsigs", matching="incremental")
    with pytest.raises(lookalike.InputError, match="has no column 'id'"):
        lookalike_spark.dedup(spark, spark.range(3).withColumnRenamed("id", "number"), output=tmp_path / "other")


def test_fingerprints_near_to_queries(spark):
    chosen = random.Random(3)
    stored = [chosen.getrandbits(64) for _ in range(3000)]
    queries = [stored[number] ^ (1 << number) ^ (1 << (number + 20)) for number in range(20)] + [chosen.getrandbits(64)]
    expected = {
        (query, number, (queries[query] ^ stored[number]).bit_count())
        for query in range(len(queries))
        for number in range(len(stored))
        if (queries[query] ^ stored[number]).bit_count() <= 3
    }
    signed = [(number, value - 2**64 if value >= 2**63 else value) for number, value in enumerate(stored)]
    rows_stored = spark.createDataFrame(signed, "id long, fingerprint long").repartition(5)
    rows_asked = spark.createDataFrame([(number, f"{value:016x}") for number, value in enumerate(queries)], "id long, fingerprint string")
    found = lookalike_spark.hamming_join(rows_stored, rows_asked, radius=3).collect()
    assert {(row["query"], row["id"], row["distance"]) for row in found} == expected
    assert len(expected) >= 20


def test_judgments_are_carried(spark, tmp_path):
    """As on one machine, with both ids and the evidence in every row."""
    story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. "
    menu = "".join(f"<li><a href=/{word}>{word}</a>" for word in ("home", "news", "sport", "weather", "contact"))

    def page(number: int, more: str) -> str:
        text = " ".join(f"{word}{number}" for word in (story * 4).split())
        return f"<html><body><ul>{menu}</ul><div><p>{text}{more}</div></body></html>"

    for side, more in (("old", ""), ("new", " And a photo of it.")):
        for part in range(3):
            with open(tmp_path / f"{side}-{part}.jsonl", "w") as file:
                for number in range(part, 40, 3):
                    line = {"id": f"{side}-{number}", "url": f"http://{side}.example/{number % 30}", "html": page(number, more)}
                    file.write(json.dumps(line) + "\n")
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("".join(f"{number % 5} 0 old-{number} {number % 3}\n" for number in range(0, 40, 2)))
    paths = {side: [str(tmp_path / f"{side}-{part}.jsonl") for part in range(3)] for side in ("old", "new")}
    command = ["transfer", "--qrels", str(qrels), "--from", *paths["old"], "--to", *paths["new"], "--output", str(tmp_path / "one")]
    program = "from lookalike._cli import main; main()"
    subprocess.run([sys.executable, "-c", program, *command], check=True, capture_output=True)
    report = lookalike_spark.transfer(spark, qrels, paths["old"], paths["new"], output=tmp_path / "many")
    assert (tmp_path / "many/result/qrels.txt").read_text() == (tmp_path / "one/qrels.txt").read_text() != ""
    mapping = rows(tmp_path / "many/result", "mapping")
    assert mapping == rows(tmp_path / "one", "mapping") and mapping[0]["similarity"] > 0.7
    expected = json.loads((tmp_path / "one/summary.json").read_text())
    varying = {"job", "from", "to", "output", "qrels"}
    assert {key: value for key, value in report.items() if key not in varying} == {
        key: expected[key] for key in report if key not in varying
    }


def test_the_command_line(tmp_path):
    command = [sys.executable, "-m", "lookalike.spark", "dedup", "--input", str(NEWSROOM), "--master", "local[2]"]
    run = subprocess.run([*command, "--output", str(tmp_path / "out"), "--threshold", "1.5"], capture_output=True, text=True)
    assert run.returncode == 2 and "threshold" in run.stderr.splitlines()[-1]
    run = subprocess.run([*command, "--output", str(tmp_path / "out"), "--exact-only", "--quiet"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["pages"] == len(rows(tmp_path / "out", "pages"))
