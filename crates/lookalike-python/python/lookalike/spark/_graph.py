"""Connected components of pairs of any number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lookalike import _lookalike

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

#: Rounds after which something is wrong: each round halves the longest way to a component's first page, about.
MOST_ROUNDS = 100


def components(pairs: DataFrame, *, driver_pairs: int, checkpoint: Callable[[int, DataFrame], DataFrame]) -> tuple[DataFrame, int]:
    """For every page of ``pairs`` (columns ``left`` and ``right``) the first page of its component, and the rounds that took.

    Up to ``driver_pairs`` pairs are finished on the driver, in one step. More are finished by large-star and small-star
    (Kiveris et al. 2014), where ``checkpoint`` stores what a round has made.
    """
    from pyspark.sql import functions as f

    edges = pairs.select("left", "right").where("left <> right")
    if edges.limit(driver_pairs + 1).count() <= driver_pairs:
        found = _lookalike.connected(edges.toArrow()).to_pyarrow()
        return pairs.sparkSession.createDataFrame(found), 1
    edges = edges.select(f.greatest("left", "right").alias("node"), f.least("left", "right").alias("to")).distinct()
    edges = checkpoint(0, edges)
    before = _fingerprint(edges)
    for number in range(1, MOST_ROUNDS + 1):
        edges = checkpoint(number, _small_star(_large_star(edges)))
        now = _fingerprint(edges)
        if now == before:
            # Every edge leads to the first page of its component.
            roots = edges.select(f.col("to").alias("node"), f.col("to").alias("component")).distinct()
            return edges.select("node", f.col("to").alias("component")).unionByName(roots), number
        before = now
    raise RuntimeError(f"components were not found in {MOST_ROUNDS} rounds")


def _fingerprint(edges: DataFrame) -> tuple[int, str]:
    from pyspark.sql import functions as f

    hashed = f.sum(f.xxhash64("node", "to").cast("decimal(38,0)")).cast("string")
    row = edges.agg(f.count("*").alias("count"), hashed.alias("sum")).collect()[0]
    return row["count"], row["sum"]


def _large_star(edges: DataFrame) -> DataFrame:
    """Connects every larger neighbour of a node with the smallest in its neighbourhood."""
    from pyspark.sql import functions as f

    both = edges.unionByName(edges.select(f.col("to").alias("node"), f.col("node").alias("to")))
    smallest = both.groupBy("node").agg(f.min("to").alias("smallest"))
    smallest = smallest.select("node", f.least("node", "smallest").alias("smallest"))
    starred = both.where("to > node").join(smallest, "node")
    return starred.select(f.col("to").alias("node"), f.col("smallest").alias("to")).distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Connects every node and its smaller neighbours with the smallest of them."""
    from pyspark.sql import functions as f

    smallest = edges.groupBy("node").agg(f.min("to").alias("smallest"))
    starred = edges.join(smallest, "node").where("to <> smallest")
    starred = starred.select(f.col("to").alias("node"), f.col("smallest").alias("to"))
    return starred.unionByName(smallest.select("node", f.col("smallest").alias("to"))).distinct()
