"""The function that people call."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike._errors import InputError
from lookalike.spark import _tables
from lookalike.spark._job import Job, job_key
from lookalike.spark._stages import Stages, local_path, write_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Pairs that are finished on the driver; 16 bytes each.
DRIVER_PAIRS = 20_000_000
#: Rows of a file that a data frame is written to.
FILE_ROWS = 50_000


@dataclass(frozen=True)
class SparkResult:
    """What a job found: tables with the columns that one machine writes.

    ``pages`` (every page), ``clusters`` (what became of each), ``pairs`` and ``near_misses`` (what was compared), ``frames`` (what
    was learnt to be frame; None where nothing is), ``against`` (what another corpus already has; None without one).
    """

    pages: DataFrame
    clusters: DataFrame
    pairs: DataFrame
    near_misses: DataFrame
    frames: DataFrame | None
    against: DataFrame | None
    summary: dict[str, Any]

    def keep(self, documents: DataFrame, id_column: str = "id") -> DataFrame:
        """Those of ``documents`` that are kept."""
        from pyspark.sql import functions as f

        kept = self.clusters.where("kept").select(f.col("id").alias("__kept"))
        is_kept = documents[id_column].cast("string") == kept["__kept"]
        return documents.join(kept, is_kept, "left_semi")


def dedup(
    spark: SparkSession,
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | DataFrame,
    *,
    output: str | os.PathLike[str],
    method: str = "minhash",
    against: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    order_by: str | Sequence[str] | None = None,
    restart: bool = False,
    quiet: bool = True,
    driver_pairs: int = DRIVER_PAIRS,
    **settings: Any,
) -> SparkResult:
    """Find near-duplicates on a cluster. The result is that of :func:`lookalike.dedup`, row for row.

    Args:
        spark: The session. :func:`lookalike.spark.session` makes one whose executors have the package.
        source: Files, directories or patterns that every executor can read: on a shared file system, or in a store
            (``s3://``, ``gs://``, ``az://``). Or a data frame with a text, which is written to ``output`` first.
        output: A directory for the tables, and for the stages that another run goes on from.
        method: minhash, simhash, combined, shingle, projection, routed or spotsigs; also with parameters.
        against: Files of another corpus, whose pages stay, and for which others are dropped.
        order_by: Which of equal documents of a data frame come first; by default, those with the smaller id.
        restart: Begin anew, even if ``output`` has stages of this job, or of another one.
        quiet: Say nothing about stages.
        driver_pairs: Up to so many verified pairs are grouped by the driver in one step.
        **settings: What :func:`lookalike.dedup` takes: ``threshold``, ``keep``, ``content``, ``text_field``, ``ngram`` …

    Raises:
        StageError: ``output`` holds the work of another job.
        InvalidSetting: A setting has a value that it cannot have.
        InputError: The source cannot be used.
    """
    directory = os.fspath(output)
    inputs = _paths(source) if isinstance(source, (str, os.PathLike, list, tuple)) else None
    if inputs is None:
        inputs = [_write_input(spark, source, directory, order_by, settings, restart)]  # type: ignore[arg-type]
    others = [] if against is None else _paths(against)
    given = {name: value for name, value in settings.items() if value is not None}
    plan = json.loads(_lookalike.job_input(inputs, method, given, others))
    plan["has_against"] = bool(others)
    stages = Stages(spark, directory, job_key(plan), restart=restart, quiet=quiet)
    job = Job(spark, plan, stages, driver_pairs)
    return _finish(job, directory)


def _paths(source: Any) -> list[str]:
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    return [os.fspath(path) for path in source]


def _finish(job: Job, directory: str) -> SparkResult:
    """Writes the tables."""

    if not job.pages().where("is_page and is_input").limit(1).count():
        raise InputError("there are no pages in the input")

    def table(name: str, make: Any) -> DataFrame | None:
        path = f"{directory.rstrip('/')}/{name}.parquet"

        def written() -> bool:
            made = make()
            if made is None:
                return False
            made.write.mode("overwrite").parquet(path)
            return True

        return job.spark.read.parquet(path) if job.stages.value(f"90-{name}", written) else None

    def there(name: str, make: Any) -> DataFrame:
        made = table(name, make)
        assert made is not None
        return made

    result = SparkResult(
        pages=there("pages", lambda: _tables.pages(job)),
        clusters=there("clusters", lambda: _tables.clusters(job)),
        pairs=there("pairs", lambda: _tables.pairs(job, job.verified())),
        near_misses=there("near_misses", lambda: _tables.pairs(job, job.near_misses())),
        frames=table("frames", lambda: _tables.frames(job)),
        against=table("against", lambda: _tables.against(job) if job.plan["has_against"] else None),
        summary=job.stages.value("91-summary", lambda: _tables.summary(job)),
    )

    def notes() -> bool:
        text = json.dumps(result.summary, ensure_ascii=False, indent=2)
        if (path := local_path(directory)) is not None:
            write_text(path / "skipped.jsonl", "".join(line + "\n" for line in _tables.skipped(job)))
            write_text(path / "summary.json", text + "\n")
            return True
        lines = job.spark.createDataFrame([(line,) for line in _tables.skipped(job)], "value string")
        lines.coalesce(1).write.mode("overwrite").text(f"{directory.rstrip('/')}/skipped.jsonl")
        rows = job.spark.createDataFrame([(text,)], "value string")
        rows.coalesce(1).write.mode("overwrite").text(f"{directory.rstrip('/')}/summary.json")
        return True

    job.stages.value("92-notes", notes)
    return result


def _write_input(
    spark: SparkSession,
    documents: DataFrame,
    directory: str,
    order_by: str | Sequence[str] | None,
    settings: dict[str, Any],
    restart: bool,
) -> str:
    """A data frame as files, in an order that is always the same."""
    from pyspark.sql import functions as f

    id_field = settings.get("id_field") or "id"
    if id_field not in documents.columns:
        raise InputError(f"the data frame has no column '{id_field}'; name the one with unique ids with id_field")
    order = [order_by] if isinstance(order_by, str) else list(order_by or [])
    missing = [name for name in order if name not in documents.columns]
    if missing:
        raise InputError(f"the data frame has no column '{missing[0]}', which order_by names")
    path = f"{directory.rstrip('/')}/_stages/0-input"
    # What is in it, whatever it was made by: another run with the same rows goes on.
    hashed = f.sum(f.xxhash64(*documents.columns).cast("decimal(38,0)")).cast("string")
    row = documents.agg(f.count("*").alias("count"), hashed.alias("sum")).collect()[0]
    key = json.dumps([row["count"], row["sum"], documents.columns, order, id_field])
    stages = Stages(spark, directory + "/_stages/input", key, restart=restart, quiet=True)

    def written() -> bool:
        rows = documents.orderBy(*order, id_field)
        rows.write.mode("overwrite").option("maxRecordsPerFile", FILE_ROWS).parquet(path)
        return True

    stages.value("written", written)
    return path
