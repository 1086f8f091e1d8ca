"""Relevance judgments, carried from one crawl to another."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike._errors import InputError
from lookalike.spark._parts import apply
from lookalike.spark._reading import SAMPLE_TASKS
from lookalike.spark._stages import Stages, local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def transfer(
    spark: SparkSession,
    qrels: str | os.PathLike[str],
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    output: str | os.PathLike[str],
    restart: bool = False,
    quiet: bool = True,
    **settings: Any,
) -> dict[str, Any]:
    """Carry relevance judgments from one crawl to another; the result is that of ``lookalike transfer``.

    Both crawls are read where they are, file by file. The judged pages, which are few, are sent to every executor, and what is found for
    them comes back to the driver, which writes the result: ``result/qrels.txt``, and ``result/mapping.parquet`` with both ids and the evidence.

    Args:
        spark: The session.
        qrels: The judgments, in TREC format, on the driver.
        source: Files of the crawl that the judgments are about.
        target: Files of the other crawl.
        output: A directory that the driver can write, and Spark too.
        **settings: What ``lookalike transfer`` takes: ``threshold``, ``radius``, ``allow_missing``, ``verified_only``, ``all_near``,
            ``on_conflict``, ``domains``, ``id_field`` …

    Returns:
        The counts, as in ``summary.json``.
    """
    directory = os.fspath(output)
    local = local_path(directory)
    if local is None:
        raise InputError(f"{directory}: the judgments are written by the driver; choose a directory that is mounted there")
    given: dict[str, Any] = {
        "qrels": os.fspath(qrels),
        "from": _paths(source),
        "to": _paths(target),
        "output": str(local / "result"),
        **{name: value for name, value in settings.items() if value is not None},
    }
    plan = json.loads(_lookalike.transfer_input(given))
    versions = [[source["path"], source["version"]] for side in ("from", "to") for unit in plan[side] for source in unit["sources"]]
    text = json.dumps([_lookalike.__version__, plan["spec"], versions], sort_keys=True)
    stages = Stages(spark, directory, hashlib.sha256(text.encode()).hexdigest(), restart=restart, quiet=quiet)
    spec = plan["spec"]

    def units(*sides: str) -> DataFrame:
        rows = [(side, unit["unit"], json.dumps(unit)) for side in sides for unit in plan[side]]
        table = spark.createDataFrame(rows, "side string, unit bigint, spec string")
        return table.repartitionByRange(max(1, len(rows)), "side", "unit").select("spec")

    def learnt() -> list[dict[str, Any]]:
        samples = stages.table("1-samples", lambda: apply("transfer_sample", spec, units("from", "to")))
        merged = samples
        if len(plan["from"]) + len(plan["to"]) > SAMPLE_TASKS:
            # Pages without a host are together: of each part those with the smallest keys.
            from pyspark.sql import functions as f

            merged = apply("sample", {"config": spec["config"]}, samples.repartition(SAMPLE_TASKS, f.col("key") % SAMPLE_TASKS))
        frames: list[dict[str, Any]] = json.loads(_lookalike.learn_frames(merged.toArrow()))
        return frames

    if plan["learns_frames"]:
        spec = {**spec, "frames": stages.value("2-frames", learnt)}
    found = stages.table("3-judged", lambda: apply("transfer_judged", spec, units("from")))
    pages = found.where("kind = 0").orderBy("unit", "row").select("found").toArrow()
    judged = _lookalike.transfer_judged(pages.column("found").to_pylist())
    matched = stages.table("4-counterparts", lambda: apply("transfer_counterparts", {**spec, "judged": judged}, units("to")))
    counts = stages.value("5-counts", lambda: _counts(found, matched))
    counterparts = matched.where("kind = 0").select("found").toArrow().column("found").to_pylist()
    replaced = {**given, "replace": True}
    report: dict[str, Any] = json.loads(
        _lookalike.transfer_finish(replaced, json.dumps(spec), judged, counterparts, json.dumps(counts))
    )
    return report


def _paths(source: Any) -> list[str]:
    return [os.fspath(source)] if isinstance(source, (str, os.PathLike)) else [os.fspath(path) for path in source]


def _counts(found: DataFrame, matched: DataFrame) -> dict[str, Any]:
    """What the report says of both crawls."""
    from pyspark.sql import functions as f

    counts: dict[str, Any] = {}
    for side, rows in (("from", found), ("to", matched)):
        row = rows.where("kind = 2").agg(f.sum("row").alias("pages"), f.sum("skipped").alias("skipped")).collect()[0]
        counts[f"{side}_pages"], counts[f"{side}_skipped"] = row["pages"] or 0, row["skipped"] or 0
    known = found.where("kind = 1").select("url_hash").distinct()
    shared = matched.where("kind = 1").join(known, "url_hash", "left_semi")
    counts["shared_urls"] = shared.count()
    sites = shared.where("domain is not null").groupBy("domain").count().collect()
    counts["sites"] = {row["domain"]: row["count"] for row in sites}
    return counts
