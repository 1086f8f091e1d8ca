"""What is read: units of the input → pages.

A page is a number, its *position*: the number of its file, and its record in it. That number is the same in every run and on every
machine, has no collisions, and is the order in which ties end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike.spark._parts import apply
from lookalike.spark._stages import Stages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Bits of a position that are the number of a record.
RECORD_BITS = 36
#: The bit of a page's class that says whether it is part of the input.
INPUT_BIT = 40
#: Tasks that samples of pages are merged in.
SAMPLE_TASKS = 32
#: Revisits of revisits are followed this far.
LONGEST_CHAIN = 64


@dataclass
class Reading:
    """The first stages: all pages, and what of them is compared, as hashes."""

    spark: SparkSession
    plan: dict[str, Any]
    stages: Stages
    driver_pairs: int

    def spec(self, **more: Any) -> dict[str, Any]:
        """What all parts know."""
        return {**self.plan["spec"], **more}

    def units(self) -> DataFrame:
        """The units of the input, one task each."""
        rows = [(unit["unit"], json.dumps(unit)) for unit in self.plan["units"]]
        units = self.spark.createDataFrame(rows, "unit bigint, spec string")
        return units.repartitionByRange(max(1, min(len(rows), 20_000)), "unit")

    def signatures(self) -> DataFrame:
        """Every page once: its facts and keys; pages of HTML wait in their blocks until frames are known."""
        return self.stages.table("1-signatures", lambda: apply("read", self.spec(), self.units()))

    def bases(self) -> DataFrame:
        """For every unit the records of its file before it; units that turned out to be none are left out."""

        def found() -> list[list[int]]:
            from pyspark.sql import functions as f

            ends: dict[int, list[int]] = {}
            if any(unit["stretch"] or unit["range"] for unit in self.plan["units"]):
                notes = self.signatures().where((f.col("kind") == 1) & f.col("note").startswith('{"end"'))
                for row in notes.select("unit", "note").collect():
                    ends[row["unit"]] = json.loads(row["note"])["end"]
            rows, base, following = [], 0, 0
            for unit in self.plan["units"]:
                if not unit["stretch"] and not unit["range"]:
                    rows.append([unit["unit"], 0])
                    continue
                start = (unit["stretch"] or unit["range"])[0]
                if start == 0:
                    base, following = 0, 0
                elif start < following:
                    # What looked like the start of a member was part of one.
                    continue
                rows.append([unit["unit"], base])
                records, following = ends[unit["unit"]]
                base += records
            return rows

        return self.spark.createDataFrame(self.stages.value("2-units", found), "unit bigint, base bigint")

    def sources(self) -> DataFrame:
        """The files of the input."""
        known = {}
        for unit in self.plan["units"]:
            for at, source in enumerate(unit["sources"]):
                known[unit["first_source"] + at] = (source["display"], source["name"])
        rows = [(number, *names) for number, names in sorted(known.items())]
        return self.spark.createDataFrame(rows, "source bigint, source_path string, source_name string")

    def placed(self) -> DataFrame:
        """The pages of the first reading, with their positions."""
        from pyspark.sql import functions as f

        pages = self.signatures().where("kind = 0").join(f.broadcast(self.bases()), "unit")
        position = f.shiftleft("source", RECORD_BITS).bitwiseOR(f.col("record") + f.col("base"))
        return pages.withColumn("position", position)

    def frames(self) -> list[dict[str, Any]] | None:
        """What is frame on pages of a site; nothing where there is no HTML."""

        def learnt() -> list[dict[str, Any]] | None:
            signatures = self.signatures()
            if not signatures.where("kind = 0 and held is not null").limit(1).count():
                return None
            samples = signatures.where("kind = 2").selectExpr("own_id as host", "own_place as key", "held as sample")
            # Of every site some pages are learnt from; of all sites so many, which the driver can hold.
            merged = apply("sample", self.spec(), samples.repartition(SAMPLE_TASKS, "host"))
            frames: list[dict[str, Any]] = json.loads(_lookalike.learn_frames(merged.toArrow()))
            return frames

        if not self.plan["learns_frames"]:
            return None
        known: list[dict[str, Any]] | None = self.stages.value("3-frames", learnt)
        return known

    def known(self, **more: Any) -> dict[str, Any]:
        """What all parts know once frames are."""
        frames = self.frames()
        return self.spec(**({} if frames is None else {"frames": frames}), **more)

    def pages(self) -> DataFrame:
        """All pages: what each is called, and what of it is compared, as hashes."""

        def made() -> DataFrame:
            from pyspark.sql import functions as f

            pages = apply("complete", self.known(), self.signatures().where("kind = 0"))
            pages = pages.join(f.broadcast(self.bases()), "unit").join(f.broadcast(self.sources()), "source")
            pages = pages.withColumn("record", f.col("record") + f.col("base"))
            pages = pages.withColumn("position", f.shiftleft("source", RECORD_BITS).bitwiseOR(f.col("record")))
            numbered = f.concat("source_name", f.lit(":"), f.col("record").cast("string"))
            pages = pages.withColumn("id", f.coalesce("id", numbered))
            is_input = f.shiftright("class", INPUT_BIT) > 0
            return pages.withColumn("is_input", is_input).drop("base")

        return self.stages.table("7-pages", lambda: self._revisited(self._named(self.stages.table("4-read", made))))

    def _named(self, pages: DataFrame) -> DataFrame:
        """Gives every page but the first of an id another one."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        def renamed() -> DataFrame:
            repeated = pages.groupBy("id").count().where("count > 1").select("id")
            order = Window.partitionBy("id").orderBy("position")
            same = pages.join(repeated, "id").select("id", "position", "source_name", "record")
            later = same.withColumn("place", f.row_number().over(order)).where("place > 1")
            new = f.concat("id", f.lit("@"), "source_name", f.lit(":"), f.col("record").cast("string"))
            return later.select("position", new.alias("new_id"))

        names = self.stages.table("5-names", renamed)
        for number in range(LONGEST_CHAIN):
            # A name that another page has, or that was just given to one before it, is none.
            again = Window.partitionBy("new_id").orderBy("position")
            taken = pages.select(f.col("id").alias("new_id")).distinct().withColumn("is_taken", f.lit(True))
            marked = names.withColumn("is_given", f.row_number().over(again) > 1).join(taken, "new_id", "left")
            marked = marked.withColumn("is_taken", f.coalesce("is_taken", f.lit(False)) | f.col("is_given"))
            if not self.stages.value(f"5-taken-{number}", lambda: bool(marked.where("is_taken").limit(1).count())):
                break
            longer = f.when(f.col("is_taken"), f.concat("new_id", f.lit("@"))).otherwise(f.col("new_id"))
            longer_names = marked.select("position", longer.alias("new_id"))
            names = self.stages.table(f"5-names-{number}", lambda: longer_names)
        pages = pages.join(names, "position", "left")
        return pages.withColumn("id", f.coalesce("new_id", "id")).drop("new_id")

    def _revisited(self, pages: DataFrame) -> DataFrame:
        """Gives revisits the words of the captures that they are the same as."""
        from pyspark.sql import functions as f

        def originals() -> DataFrame:
            return self._originals(pages)

        if not self.stages.value("6-revisits", lambda: bool(pages.where("is_revisit").limit(1).count())):
            return pages.withColumn("original", f.lit(None).cast("bigint")).withColumn("is_page", f.lit(True))
        found = self.stages.table("6-originals", originals)
        facts = ["tokens", "identity", "text_hash", "scope"]
        theirs = pages.select(f.col("position").alias("original"), *[f.col(name).alias(f"their_{name}") for name in facts])
        found = found.join(theirs, "original")
        pages = pages.join(found, "position", "left")
        for name in facts:
            pages = pages.withColumn(name, f.when(f.col("original").isNotNull(), f.col(f"their_{name}")).otherwise(f.col(name)))
        pages = pages.drop(*[f"their_{name}" for name in facts])
        return pages.withColumn("is_page", ~f.col("is_revisit") | f.col("original").isNotNull())

    def _originals(self, pages: DataFrame) -> DataFrame:
        """Revisits and the pages that have their words: by record id, else by URL and time, else by digest."""
        from pyspark.sql import functions as f

        keys = ["id", "place", "digest"]
        captures = pages.where("not is_revisit")
        revisits = pages.where("is_revisit").select(
            "position", *[f"own_{key}" for key in keys[:2]], *[f"ref_{key}" for key in keys]
        )
        waiting = revisits.select("position", *[f"ref_{key}" for key in keys])
        found = None
        for _ in range(LONGEST_CHAIN):
            for key in keys:
                first = captures.where(f"own_{key} is not null").groupBy(f.col(f"own_{key}").alias(f"ref_{key}"))
                waiting = waiting.join(first.agg(f.min("position").alias(f"by_{key}")), f"ref_{key}", "left")
            waiting = waiting.withColumn("original", f.coalesce(*[f"by_{key}" for key in keys]))
            here = waiting.where("original is not null").select("position", "original")
            found = here if found is None else found.unionByName(here)
            # The others may be revisits of revisits.
            left = waiting.where("original is null").select("position", *[f"ref_{key}" for key in keys])
            for key in keys[:2]:
                named = revisits.where(f"own_{key} is not null").groupBy(f.col(f"own_{key}").alias(f"ref_{key}"))
                left = left.join(named.agg(f.min("position").alias(f"via_{key}")), f"ref_{key}", "left")
            left = left.withColumn("via", f.coalesce("via_id", "via_place")).where("via is not null").select("position", "via")
            if not left.limit(1).count():
                break
            onward = revisits.select(f.col("position").alias("via"), *[f"ref_{key}" for key in keys])
            waiting = left.join(onward, "via").drop("via").localCheckpoint()
        assert found is not None
        return found
