"""Stored fingerprints that are near to some queries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lookalike import _lookalike
from lookalike._errors import InputError
from lookalike.spark._parts import _worker

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def _numbers(table: DataFrame, column: str) -> Column:
    """Fingerprints as numbers with a sign: those of 16 hexadecimal digits, too."""
    from pyspark.sql import functions as f

    if column not in table.columns:
        raise InputError(f"the data frame has no column '{column}'; name the one with fingerprints with fingerprint_column")
    kind = dict(table.dtypes)[column]
    if kind == "string":
        return f.conv(f.col(column), 16, -10).cast("bigint")
    if kind == "bigint":
        return f.col(column)
    raise InputError(f"'{column}' is of the type {kind}; fingerprints are bigint, or strings of 16 hexadecimal digits")


def hamming_join(
    stored: DataFrame, queries: DataFrame, *, radius: int = 3, id_column: str = "id", fingerprint_column: str = "fingerprint"
) -> DataFrame:
    """Pairs of a stored row and a query whose fingerprints differ in at most ``radius`` bits.

    The queries are sent to every executor, and the stored rows are gone through where they are: nothing of them is moved but
    matches. A million queries take about 20 MB on every executor.

    Args:
        stored: Rows with an id and a fingerprint: a number of 64 bits (bigint), or 16 hexadecimal digits.
        queries: The same, far fewer.
        radius: The most bits that may differ.

    Returns:
        Columns ``query`` and ``id`` (the ids of both) and ``distance``.
    """
    from pyspark.sql import functions as f

    rows = stored.select(f.col(id_column).alias("id"), _numbers(stored, fingerprint_column).alias("fingerprint"))
    asked = queries.select(f.col(id_column).alias("query"), _numbers(queries, fingerprint_column).alias("asked"))
    distinct = [row["asked"] & (2**64 - 1) for row in asked.select("asked").distinct().where("asked is not null").collect()]
    spec = json.dumps({"queries": distinct, "radius": radius, "rows": 2**63})
    found = (
        rows.where("fingerprint is not null")
        .select("fingerprint")
        .mapInArrow(_worker("near", spec), _lookalike.part_columns("near"))
    )
    matches = found.distinct().withColumnRenamed("query", "asked")
    return rows.join(f.broadcast(matches), "fingerprint").join(f.broadcast(asked), "asked").select("query", "id", "distance")
