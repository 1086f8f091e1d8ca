"""Components of graphs that no driver holds."""

import math
import random

import pytest

from lookalike.spark._graph import components


def chain(nodes: int) -> list[tuple[int, int]]:
    # In no order, so that the first page is not where the chain begins.
    names = list(range(nodes))
    random.Random(1).shuffle(names)
    return list(zip(names, names[1:]))


def scattered(seed: int) -> list[tuple[int, int]]:
    chosen = random.Random(seed)
    return [(chosen.randrange(400), chosen.randrange(400)) for _ in range(chosen.choice([100, 200, 400]))]


GRAPHS = {
    "a chain of 1,000": chain(1000),
    "a chain of 100,000": chain(100_000),
    "a star of 50,000": [(25_000, node) for node in range(50_000)],
    **{f"a random graph, {seed}": scattered(seed) for seed in range(3)},
}


def by_hand(edges: list[tuple[int, int]]) -> dict[int, int]:
    """Every node, and the smallest that can be reached from it."""
    parent = {node: node for edge in edges for node in edge}

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for left, right in edges:
        left, right = root(left), root(right)
        parent[max(left, right)] = min(left, right)
    return {node: root(node) for edge in edges if edge[0] != edge[1] for node in edge}


@pytest.mark.parametrize("name", GRAPHS)
def test_components_are_right_and_rounds_are_few(spark, tmp_path, name):
    edges = GRAPHS[name]
    expected = by_hand(edges)
    pairs = spark.createDataFrame(edges, "left long, right long")

    def stored(number, table):
        table.write.parquet(str(tmp_path / str(number)))
        return spark.read.parquet(str(tmp_path / str(number)))

    found, rounds = components(pairs, driver_pairs=0, checkpoint=stored)
    rows = found.collect()
    assert len(rows) == len(expected)
    assert {row["node"]: row["component"] for row in rows} == expected
    assert rounds <= math.log2(len(expected)) + 2, f"{rounds} rounds"
    found, rounds = components(pairs, driver_pairs=10**6, checkpoint=stored)
    assert {row["node"]: row["component"] for row in found.collect()} == expected and rounds == 1
