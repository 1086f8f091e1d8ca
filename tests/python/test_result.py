"""The result of a run, opened with the tools that people have."""

import json
import os
import subprocess
from pathlib import Path

import duckdb
import pandas
import polars
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
