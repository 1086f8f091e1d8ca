"""The result of a run, opened with the tools that people have."""

import json
import os
import re
import subprocess
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {
    "pages": ["id", "source", "record", "offset", "length", "url", "title", "tokens", "identity", "revisit_of", "content", "text_hash"],
    "clusters": ["id", "cluster", "kept", "kept_id", "similarity", "page_similarity", "kind", "component"],
    "pairs": ["left", "right", "similarity", "left_in_right", "right_in_left", "score", "estimate", "page_similarity", "same_site"],
    "near_misses": ["left", "right", "similarity", "left_in_right", "right_in_left", "score", "estimate", "page_similarity", "same_site"],
}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    output = tmp_path_factory.mktemp("run") / "out"
    command = [os.environ["LOOKALIKE"], "dedup", str(ROOT / "examples/newsroom"), "--output", str(output), "--jsonl"]
    # Strict, so that some pairs are near misses.
    command += ["--within-site", "0.8", "--between-sites", "0.8"]
    subprocess.run(command, check=True)
    return output


@pytest.mark.parametrize("table", COLUMNS)
def test_every_reader_sees_the_same_table(result, table):
    path = str(result / f"{table}.parquet")
    frame = pandas.read_parquet(path)
    assert list(frame.columns) == COLUMNS[table]
    assert len(frame) > 0
    polar = polars.read_parquet(path)
    assert polar.columns == COLUMNS[table]
    rows = duckdb.sql(f"SELECT * FROM '{path}'").fetchall()
    assert [tuple(row) for row in polar.rows()] == rows
    assert len(frame) == len(rows)
    lines = [json.loads(line) for line in (result / f"{table}.jsonl").read_text().splitlines()]
    assert [tuple(line.values()) for line in lines] == rows


def test_the_tables_fit_together(result):
    summary = json.loads((result / "summary.json").read_text())
    at = lambda table: f"'{result}/{table}.parquet'"
    kept, dropped = duckdb.sql(f"SELECT count(*) FILTER (kept), count(*) FILTER (NOT kept) FROM {at('clusters')}").fetchall()[0]
    assert (kept, dropped) == (summary["kept"], summary["dropped"])
    # Every near-duplicate names a kept page, and their pair is among the verified ones.
    orphans = duckdb.sql(f"""
        SELECT c.id FROM {at('clusters')} c
        JOIN {at('pages')} own ON own.id = c.id
        JOIN {at('pages')} kept ON kept.id = c.kept_id
        LEFT JOIN {at('pairs')} p ON (p.left, p.right) IN ((own.identity, kept.identity), (kept.identity, own.identity))
        WHERE c.kind = 'near' AND (p.similarity IS NULL OR p.similarity <> c.similarity)
    """).fetchall()
    assert orphans == []
    assert summary["kinds"]["near"] > 20


def test_a_dataset_in_shards_is_one_again(tmp_path):
    words = lambda topic: " ".join(f"w{topic * 7919 + n * n * (topic + 3) % 3001}" for n in range(80))
    shards = {"train-00000-of-00002": [1, 2, 3], "train-00001-of-00002": [2, 4], "test-00000-of-00001": [5, 1]}
    (tmp_path / "set/data").mkdir(parents=True)
    for name, topics in shards.items():
        texts = pyarrow.array([words(topic) for topic in topics], pyarrow.large_string())
        rows = pyarrow.table({"id": [f"{name}:{n}" for n in range(len(topics))], "text": texts, "tags": [["a", "b"]] * len(topics)})
        pyarrow.parquet.write_table(rows, tmp_path / f"set/data/{name}.parquet")
    output = tmp_path / "out"
    command = [os.environ["LOOKALIKE"], "dedup", str(tmp_path / "set"), "--output", str(output), "--removed", "--annotate"]
    subprocess.run(command, check=True)
    read = lambda directory: pyarrow.dataset.dataset(str(output / directory), format="parquet")
    before = pyarrow.dataset.dataset(str(tmp_path / "set"), format="parquet")
    kept, removed, annotated = read("kept"), read("removed"), read("annotated")
    assert kept.schema == removed.schema == before.schema
    assert sorted(Path(file).relative_to(output / "kept").as_posix() for file in kept.files) == sorted(f"data/{name}.parquet" for name in shards)
    by_id = lambda rows: sorted(rows.to_pylist(), key=lambda row: row["id"])
    assert by_id(pyarrow.concat_tables([kept.to_table(), removed.to_table()])) == by_id(before.to_table())
    assert removed.count_rows() == 2
    assert annotated.schema.names[:3] == before.schema.names
    assert annotated.schema.field("text").type == pyarrow.large_string()
    assert by_id(annotated.to_table(columns=before.schema.names)) == by_id(before.to_table())
    # Its card is one that the Hub reads.
    front = (output / "README.md").read_text().split("---\n")[1]
    paths = re.findall(r'split: (\w+)\n    path: "([^"]+)"', front)
    assert paths[:2] == [("test", "kept/data/test-*"), ("train", "kept/data/train-*")]
    for split, pattern in paths:
        found = sorted(path.name for path in output.glob(pattern))
        assert found and all(name.startswith(f"{split}-") for name in found)
