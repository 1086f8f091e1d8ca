"""The tables of two results, row by row."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

NEWSROOM = Path(__file__).parents[3] / "examples/newsroom"
TABLES = ("pages", "clusters", "pairs", "near_misses", "frames", "against")


def rows(directory: Path, table: str) -> list[dict] | None:
    """The rows of a table, in order: a file, or the parts that Spark writes. None where there is no such table."""
    path = Path(directory) / f"{table}.parquet"
    if not path.exists():
        return None
    parts = sorted(path.glob("part-*")) if path.is_dir() else [path]
    # Each by itself: a directory would be read as one dataset, in no order.
    return pa.concat_tables([pq.ParquetFile(part).read() for part in parts]).to_pylist()


def assert_same(one: Path, other: Path) -> int:
    """Fails unless all tables are the same, row for row and in the same order; returns the number of pairs."""
    for table in TABLES:
        expected, found = rows(one, table), rows(other, table)
        assert (found is None) == (expected is None), f"{table} is in one result only"
        for at, (left, right) in enumerate(zip(expected or [], found or [])):
            assert left == right, f"row {at} of {table}"
        assert len(expected or []) == len(found or []), table
    return len(rows(one, "pairs") or [])
