"""The tables of a result, with the columns that one machine writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lookalike.spark._job import Job

_FRAMES = (
    "site string, grouped_by string, similarity double, group bigint, markup string, believes_markup boolean, block string,"
    " pages bigint, contexts bigint, example string"
)

#: What can become of a page.
_KINDS = ("contained", "empty", "exact", "near", "representative", "same_core", "short", "unique")


def pages(job: Job) -> DataFrame:
    """Every page, and the first with the same words."""
    from pyspark.sql import functions as f

    table = job.pages().where("is_page")
    ids = job.pages().select(f.col("position"), "id")
    firsts = (
        job.members()
        .select("position", "first")
        .join(ids.select(f.col("position").alias("first"), f.col("id").alias("identity_id")), "first")
    )
    originals = ids.select(f.col("position").alias("original"), f.col("id").alias("revisit_of"))
    table = table.join(firsts, "position").join(originals, "original", "left")
    text_hash = f.when(f.col("text_hash") != 0, f.lower(f.lpad(f.hex("text_hash"), 16, "0")))
    return table.orderBy("position").select(
        "id",
        f.col("source_path").alias("source"),
        "record",
        "offset",
        "length",
        "url",
        "title",
        "tokens",
        f.col("identity_id").alias("identity"),
        "revisit_of",
        f.col("scope").alias("content"),
        text_hash.alias("text_hash"),
    )


def clusters(job: Job) -> DataFrame:
    """What became of every page."""
    from pyspark.sql import functions as f

    pages = job.pages().select("position", "id", "is_page")
    found = job.components().withColumnRenamed("node", "first")
    of_page = job.members().select("position", "first").join(found, "first", "left")
    of_page = of_page.withColumn("component", f.coalesce("component", "first")).join(pages.select("position", "id"), "position")
    smallest = of_page.groupBy("component").agg(f.min("id").alias("smallest"))
    of_page = of_page.select("position", "component").join(smallest, "component")
    fates = job.with_page_similarity(job.fates())
    kept = pages.select(f.col("position").alias("kept"), f.col("id").alias("kept_id"))
    rows = fates.join(pages.where("is_page"), "position").join(kept, "kept").join(of_page, "position")
    return rows.orderBy("position").select(
        "id",
        f.col("kept_id").alias("cluster"),
        (f.col("kept") == f.col("position")).alias("kept"),
        "kept_id",
        "similarity",
        "page_similarity",
        "kind",
        f.col("smallest").alias("component"),
    )


def pairs(job: Job, rows: DataFrame) -> DataFrame:
    """Pairs with what they have in common."""
    from pyspark.sql import functions as f

    named = job.with_page_similarity(
        job._with_texts(rows.select(*[name for name in rows.columns if name not in ("accepted", "near_miss")]))
    )
    ids = job.pages().select("position", "id", "site")
    for end in ("left", "right"):
        named = named.join(
            ids.select(f.col("position").alias(end), f.col("id").alias(f"{end}_id"), f.col("site").alias(f"{end}_site")), end
        )
    # What decided, or what the URLs say.
    same_site = f.coalesce("same_site", f.col("left_site") == f.col("right_site"))
    return named.orderBy("left", "right").select(
        f.col("left_id").alias("left"),
        f.col("right_id").alias("right"),
        "similarity",
        "left_in_right",
        "right_in_left",
        "score",
        "estimate",
        "page_similarity",
        same_site.alias("same_site"),
    )


def against(job: Job) -> DataFrame:
    """What was dropped because another corpus has it, with both ids."""
    from pyspark.sql import functions as f

    pages = job.pages().select("position", "id", "is_input")
    theirs = pages.where("not is_input").select(f.col("position").alias("kept"), f.col("id").alias("against_id"))
    rows = job.fates().where("kept <> position").join(pages.where("is_input"), "position").join(theirs, "kept")
    return rows.orderBy("position").select("id", "against_id", "similarity", "kind")


def frames(job: Job) -> DataFrame | None:
    """What was learnt to be frame."""
    if not job.plan["learns_frames"]:
        return None
    rows = []
    for row in job.frames() or []:
        block = None if row["block"] is None else f"{row['block']:016x}"
        rows.append(
            (
                row["site"],
                row["grouped_by"],
                float(row["similarity"]),
                row["group"],
                row["markup"],
                row["believes_markup"],
                block,
                row["pages"],
                row["contexts"],
                row["example"],
            )
        )
    return job.spark.createDataFrame(rows, _FRAMES).coalesce(1)


def skipped(job: Job) -> Iterator[str]:
    """Records that could not be used, as lines of JSON."""
    from pyspark.sql import functions as f

    for problem in job.plan["problems"]:
        yield json.dumps(problem, ensure_ascii=False)
    notes = job.signatures().where((f.col("kind") == 1) & f.col("note").startswith('{"skipped"'))
    # Units count the records of their file from their own start.
    for row in notes.join(f.broadcast(job.bases()), "unit").orderBy("unit").toLocalIterator():
        record = json.loads(row["note"])["skipped"]
        if record.get("record") is not None:
            record["record"] += row["base"]
        yield json.dumps(record, ensure_ascii=False)


def summary(job: Job) -> dict[str, Any]:
    """The counts, under the names that one machine gives them."""
    from pyspark.sql import functions as f

    fates = job.fates().join(job.pages().where("is_page and is_input").select("position"), "position", "left_semi")
    kinds = dict.fromkeys(_KINDS, 0) | {row["kind"]: row["count"] for row in fates.groupBy("kind").count().collect()}
    dropped = fates.where("kept <> position").count()
    total = sum(kinds.values())
    notes = job.signatures().where("kind = 1")
    bad = (
        notes.where(f.col("note").startswith('{"skipped"'))
        .groupBy(f.get_json_object("note", "$.skipped.kind").alias("kind"))
        .count()
    )
    skips = {row["kind"]: row["count"] for row in bad.collect()}
    for problem in job.plan["problems"]:
        skips[problem["kind"]] = skips.get(problem["kind"], 0) + 1
    grouped = fates.groupBy("kept").count().where("count > 1")
    sizes = grouped.agg(f.count("*").alias("clusters"), f.max("count").alias("largest")).collect()[0]
    crowds, crowd_count = [], 0
    if job.has_crowds():
        buckets = job.crowds().groupBy("band", "key").agg(f.count("*").alias("size"), f.min("position").alias("position"))
        crowd_count = buckets.count()
        largest = buckets.join(job.pages().select("position", "id"), "position").orderBy(f.desc("size"), "band").limit(20)
        crowds = [{"band": row["band"], "size": row["size"], "example": row["id"]} for row in largest.collect()]
    return {
        "lookalike": _lookalike.__version__,
        "config": job.plan["spec"]["config"],
        "config_hash": job.plan["config_hash"],
        "rule": job.plan["rule"],
        "sources": len({source["path"] for unit in job.plan["units"] for source in unit["sources"]}),
        "source_bytes": job.plan["bytes"],
        "pages": total,
        "kept": total - dropped,
        "dropped": dropped,
        "kinds": dict(sorted(kinds.items())),
        "identity_sets": job.sets().count(),
        "pairs": job.verified().count(),
        "near_misses": job.near_misses().count(),
        "clusters": sizes["clusters"],
        "largest_cluster": sizes["largest"] or 1,
        "capped_buckets": crowd_count,
        "capped": crowds,
        "skipped": dict(sorted(skips.items())),
    }
