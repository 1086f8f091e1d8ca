"""The main job on Spark, stage by stage.

Every decision is made by the engine (:mod:`lookalike.spark._parts`); here rows are sorted, grouped and joined between its parts.
A page is a number, its *position*: the number of its file, and its record in it. That number is the same in every run and on every
machine, has no collisions, and is the order in which ties end. Of pages with the same words only one, the *first* of its set,
goes on.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike.spark._graph import components
from lookalike.spark._parts import apply
from lookalike.spark._stages import Stages

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Bits of a position that are the number of a record.
RECORD_BITS = 36
#: The bit of a page's class that says whether it is part of the input.
INPUT_BIT = 40
#: Tasks that samples of pages are merged in.
SAMPLE_TASKS = 32
#: Revisits of revisits are followed this far.
LONGEST_CHAIN = 64


def job_key(plan: dict[str, Any]) -> str:
    """What decides a result: the settings, and what is read."""
    sources = [[source["path"], source["version"]] for unit in plan["units"] for source in unit["sources"]]
    text = json.dumps([_lookalike.__version__, plan["config_hash"], plan["spec"], sources], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Job:
    """The main job; each method is a stage, and asks for those before it."""

    spark: SparkSession
    plan: dict[str, Any]
    stages: Stages
    driver_pairs: int
    rounds: int = field(default=0, init=False)

    def spec(self, **more: Any) -> dict[str, Any]:
        """What all parts know."""
        return {**self.plan["spec"], **more}

    # What is read.

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
            if any(unit["stretch"] for unit in self.plan["units"]):
                notes = self.signatures().where((f.col("kind") == 1) & f.col("note").startswith('{"end"'))
                for row in notes.select("unit", "note").collect():
                    ends[row["unit"]] = json.loads(row["note"])["end"]
            rows, base, following = [], 0, 0
            for unit in self.plan["units"]:
                if not unit["stretch"]:
                    rows.append([unit["unit"], 0])
                    continue
                start = unit["stretch"][0]
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
            return json.loads(_lookalike.learn_frames(merged.toArrow()))

        if not self.plan["learns_frames"]:
            return None
        return self.stages.value("3-frames", learnt)

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
            found = later.select("position", new.alias("new_id"))
            taken = pages.select(f.col("id").alias("new_id"))
            for _ in range(8):
                # A name that another page has, or that was just given to one before it.
                again = Window.partitionBy("new_id").orderBy("position")
                is_given = f.row_number().over(again) > 1
                is_taken = found.join(taken.distinct().withColumn("is_taken", f.lit(True)), "new_id", "left")
                is_taken = is_taken.withColumn("is_taken", f.coalesce("is_taken", f.lit(False)) | is_given)
                found = is_taken.select(
                    "position",
                    f.when(f.col("is_taken"), f.concat("new_id", f.lit("@"))).otherwise(f.col("new_id")).alias("new_id"),
                )
            return found

        names = self.stages.table("5-names", renamed)
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
        revisits = pages.where("is_revisit").select("position", *[f"own_{key}" for key in keys[:2]], *[f"ref_{key}" for key in keys])
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

    # Who is the same page, and who comes first.

    def members(self) -> DataFrame:
        """For every page the first of its set, and the rank of the set: that of its best page."""

        def made() -> DataFrame:
            from pyspark.sql import functions as f

            pages = self.pages()
            rank = f.struct("class", "rank", "position")
            sets = (
                pages.where("tokens > 0")
                .groupBy("identity")
                .agg(
                    f.min(f.when(~f.col("is_revisit"), f.col("position"))).alias("with_text"),
                    f.min("position").alias("any"),
                    f.min(rank).alias("best"),
                )
                .select("identity", f.coalesce("with_text", "any").alias("set_first"), "best")
            )
            joined = pages.join(sets, (pages["identity"] == sets["identity"]) & (pages["tokens"] > 0), "left")
            return joined.select(
                "position",
                f.coalesce("set_first", "position").alias("first"),
                f.coalesce(f.col("best.position"), "position").alias("best"),
                f.coalesce(f.col("best.class"), "class").alias("set_class"),
                f.coalesce(f.col("best.rank"), "rank").alias("set_rank"),
            )

        return self.stages.table("8-sets", made)

    def sets(self) -> DataFrame:
        """One row for every set, under the name of its first page."""
        return self.members().where("position = first").drop("position")

    def representatives(self) -> DataFrame:
        """The pages that stand for their sets and are long enough to be compared."""
        from pyspark.sql import functions as f

        firsts = self.members().where("position = first").select("position")
        least = max(self.plan["min_tokens"], 1)
        pages = self.pages().where((f.col("tokens") >= least) & f.col("has_features"))
        return pages.join(firsts, "position", "left_semi")

    # Who is worth comparing.

    def keys(self) -> DataFrame:
        """The keys of all representatives."""

        def made() -> DataFrame:
            rows = self.stages.value("9-rows", lambda: self.pages().count())
            pages = self.representatives().select("position", "tokens", "is_input", "columns")
            return apply("keys", self.known(rows=rows), pages)

        return self.stages.table("10-keys", made)

    def candidates(self) -> DataFrame:
        """Pairs that share a key; and, with a band in place of a right page, members of buckets that are too full."""

        def made() -> DataFrame:
            from pyspark.sql import functions as f

            keys = self.keys()
            limit = self.plan["bucket_limit"]
            if self.plan["filters"]:
                limit = max(limit, self.plan["most_filtered"])
            counts = keys.groupBy("band", "key").count().where("count > 1")
            shared = keys.join(counts, ["band", "key"])
            # A bucket beyond the limit is in no task as a whole.
            few = shared.where(f.col("count") <= limit).drop("count")
            sorted_keys = few.repartition("band", "key").sortWithinPartitions("band", "key", "position")
            pairs = apply("pairs", self.known(), sorted_keys.select("band", "key", "position", "tokens", "is_input", "columns"))
            many = shared.where(f.col("count") > limit)
            none = f.lit(None).cast("bigint")
            return pairs.unionByName(many.select(f.col("position").alias("left"), none.alias("right"), "band", "key"))

        if self.plan["exact_only"]:
            return self.spark.createDataFrame([], _lookalike.part_columns("pairs"))
        return self.stages.table("11-candidates", made if not self.plan["by_features"] else self._by_features)

    def _by_features(self) -> DataFrame:
        """Pairs that share enough features, and crowds of pages that have too many such pairs."""
        from pyspark.sql import functions as f

        facts = self.representatives().select("position", "tokens", "is_input", "columns")
        sets = self.sets().select(f.col("first").alias("position"), "set_class", "set_rank", "best")
        features = self.features("12-all-features", facts.select("position"))
        limit = self.plan["bucket_limit"]
        # Pages with the very same features: where there are many, the best of them stands for all.
        same = features.where("count > 0").join(sets, "position")
        crowds = same.groupBy("set_hash").agg(
            f.count("*").alias("same"), f.min(f.struct("set_class", "set_rank", "best", "position")).alias("first")
        )
        crowds = crowds.where(f.col("same") > limit).select("set_hash", f.col("first.position").alias("stands"))
        in_crowd = same.select("position", "set_hash").join(crowds, "set_hash")
        none = f.lit(None).cast("bigint")
        equal = in_crowd.select(f.col("position").alias("left"), none.alias("right"), f.lit(-1).cast("bigint").alias("band"), f.col("set_hash").alias("key"))
        looked_up = features.join(in_crowd.where("position <> stands").select("position"), "position", "left_anti")
        looked_up = self.stages.table("13-looked-up", lambda: looked_up.where("count > 0").join(facts, "position"))
        group = f.lit(0).cast("bigint")
        if self.plan["spec"]["config"]["pairs"].get("within"):
            # The group is the last of the columns, whose bytes are turned round.
            last = f.expr("reverse(substring(columns, length(columns) - 7, 8))")
            group = f.conv(f.hex(last), 16, -10).cast("bigint")
        looked_up = looked_up.withColumn("group", group)
        counted = apply("spots", self.known(), looked_up.select("features"))
        counts = counted.groupBy("position").agg(f.sum("total").alias("count"))
        counts = self.stages.value("14-counts", lambda: [[row["position"], row["count"]] for row in counts.collect()])
        wanted = looked_up.select("features", "position", "tokens", "is_input", "group")
        spots = apply("spots", self.known(counts=counts), wanted)
        spots = self.stages.table("15-spots", lambda: spots)
        shared = spots.join(spots.groupBy("feature").count().where("count > 1").select("feature"), "feature")
        lists = shared.repartition("feature").sortWithinPartitions("feature").select(*spots.columns)
        met = apply("meetings", self.known(), lists).groupBy("left", "right")
        met = met.agg(f.count("*").alias("shared"), f.first("rest").alias("rest"), f.first("needed").alias("needed"))
        enough = met.where((f.col("shared") + f.col("rest")).cast("double") >= f.col("needed")).select("left", "right")
        pairs = self.stages.table("16-meetings", lambda: enough)
        ends = pairs.select(f.col("left").alias("page")).unionAll(pairs.select(f.col("right").alias("page")))
        crowded = ends.groupBy("page").count().where(f.col("count") > limit).select("page")
        marked = pairs.join(crowded.withColumnRenamed("page", "left").withColumn("l", f.lit(True)), "left", "left")
        marked = marked.join(crowded.withColumnRenamed("page", "right").withColumn("r", f.lit(True)), "right", "left")
        between = f.coalesce("l", f.lit(False)) & f.coalesce("r", f.lit(False))
        apart = marked.where(~between).select("left", "right", none.alias("band"), none.alias("key"))
        inside = self.stages.table("17-crowded", lambda: marked.where(between).select("left", "right"))
        found, _ = self._components("18-crowds", inside)
        grouped = found.select(f.col("node").alias("left"), none.alias("right"), f.lit(0).cast("bigint").alias("band"), f.col("component").alias("key"))
        return apart.unionByName(equal).unionByName(grouped)

    def crowds(self) -> DataFrame:
        """Members of buckets that are too full; the same members in several bands are one crowd."""

        def made() -> DataFrame:
            from pyspark.sql import functions as f

            members = self.candidates().where("right is null").select("band", "key", f.col("left").alias("position"))
            hashed = f.sum(f.xxhash64("position").cast("decimal(38,0)"))
            buckets = members.groupBy("band", "key").agg(f.count("*").alias("size"), hashed.alias("sum"))
            chosen = buckets.groupBy("size", "sum").agg(f.min(f.struct("band", "key")).alias("bucket"))
            chosen = chosen.select("bucket.band", "bucket.key").withColumn("crowd", f.xxhash64("band", "key"))
            return members.join(chosen, ["band", "key"])

        return self.stages.table("19-crowds", made)

    def has_crowds(self) -> bool:
        """Whether any bucket is too full."""
        return bool(self.stages.value("20-has-crowds", lambda: bool(self.crowds().limit(1).count())))

    # What pages are compared by.

    def features(self, name: str, wanted: DataFrame, *, whole: bool = False) -> DataFrame:
        """The features of some pages, from where they waited, or from the input, of which only they are read again."""

        def made() -> DataFrame:
            from pyspark.sql import functions as f

            spec = self.known(whole=whole)
            chosen = wanted.select("position").distinct()
            held = self.placed().where("held is not null").select("position", "url", "held")
            waited = apply("held_features", spec, held.join(chosen, "position", "left_semi"))
            places = self.pages().where("not is_held").select("unit", "position", "source", "record", "offset", "length")
            places = places.join(chosen, "position", "left_semi")
            record = f.struct("position", "source", "record", "offset", "length")
            lists = places.groupBy("unit").agg(f.collect_list(record).alias("wanted"))
            again = self.units().join(lists, "unit").select("spec", "wanted")
            return waited.unionByName(apply("features", spec, again))

        return self.stages.table(name, made)

    def compared_features(self) -> DataFrame:
        """The features of all pages that are compared."""
        if self.plan["by_features"] and not self.plan["exact_only"]:
            self.candidates()
            return self.features("12-all-features", self.representatives().select("position"))
        pairs = self.candidates()
        ends = pairs.selectExpr("left as position").unionAll(pairs.where("right is not null").selectExpr("right as position"))
        return self.features("21-features", ends)

    def crowd_pairs(self) -> DataFrame:
        """Members of crowds and their leaders."""

        def made() -> DataFrame:
            from pyspark.sql import Window
            from pyspark.sql import functions as f

            per_feature, most = self.plan["leaders"]
            features = self.compared_features().select("position", "features")
            leads = apply("leads", self.spec(), self.crowds().select("crowd", "position").join(features, "position"))
            sets = self.sets().select(f.col("first").alias("position"), "set_class", "set_rank", "best")
            leads = self.stages.table("22-leads", lambda: leads.join(sets, "position"))
            rank = ["set_class", "set_rank", "best"]
            first = Window.partitionBy("crowd", "feature").orderBy(*rank)
            leaders = leads.withColumn("place", f.row_number().over(first)).where(f.col("place") <= per_feature)
            leaders = leaders.select("crowd", "feature", f.col("position").alias("leader"), f.struct(*rank).alias("leads"))
            met = leads.join(leaders, ["crowd", "feature"]).where(f.struct(*rank) > f.col("leads"))
            shared = met.groupBy("crowd", "position", "leader").agg(f.count("*").alias("shared"), f.first("leads").alias("leads"))
            near = Window.partitionBy("crowd", "position").orderBy(f.desc("shared"), "leads")
            nearest = shared.withColumn("place", f.row_number().over(near)).where(f.col("place") <= most)
            left, right = f.least("position", "leader"), f.greatest("position", "leader")
            pairs = nearest.select(left.alias("left"), right.alias("right"), f.col("position").alias("member"))
            return self._wanted(pairs.distinct())

        return self.stages.table("23-crowd-pairs", made)

    def _wanted(self, pairs: DataFrame) -> DataFrame:
        """Pairs that the user wants to be compared."""
        from pyspark.sql import functions as f

        ratio, is_between = self.plan["length_ratio"], self.plan["drops_containers"]
        if ratio is None and not is_between:
            return pairs
        facts = self.pages().select("position", "tokens", "is_input")
        for end in ("left", "right"):
            named = facts.select(f.col("position").alias(end), f.col("tokens").alias(f"{end}_tokens"), f.col("is_input").alias(f"{end}_input"))
            pairs = pairs.join(named, end)
        if ratio is not None:
            shorter, longer = f.least("left_tokens", "right_tokens"), f.greatest("left_tokens", "right_tokens", f.lit(1))
            pairs = pairs.where(shorter.cast("double") / longer.cast("double") >= f.lit(ratio))
        if is_between:
            pairs = pairs.where("left_input <> right_input")
        return pairs.drop("left_tokens", "right_tokens", "left_input", "right_input")

    # The comparison.

    def _compared(self, pairs: DataFrame, features: DataFrame, **more: Any) -> DataFrame:
        """What pairs have in common."""
        from pyspark.sql import functions as f

        rows = pairs.select("left", "right")
        for end in ("left", "right"):
            named = features.select(
                f.col("position").alias(end), f.col("features").alias(f"{end}_features"), f.col("sketch").alias(f"{end}_sketch")
            )
            rows = rows.join(named, end)
        return apply("compare", self.known(**more), rows)

    def scores(self) -> DataFrame:
        """All candidates that are near-duplicates, or nearly."""

        def made() -> DataFrame:
            pairs = self.candidates().where("right is not null").select("left", "right").distinct()
            if self.has_crowds():
                pairs = pairs.unionByName(self.crowd_pairs().select("left", "right")).distinct()
            return self._compared(pairs, self.compared_features())

        return self.stages.table("24-scores", made)

    def near_misses(self) -> DataFrame:
        """Pairs that just are no near-duplicates; of those in crowds, the closest of each page."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        near = self.scores().where("near_miss")
        if not self.has_crowds():
            return near
        regular = near.join(self.candidates().where("right is not null").select("left", "right").distinct(), ["left", "right"], "left_semi")
        crowded = near.join(self.crowd_pairs(), ["left", "right"])
        closest = Window.partitionBy("member").orderBy(f.desc("similarity"), "left", "right")
        crowded = crowded.withColumn("place", f.row_number().over(closest)).where("place = 1").drop("place", "member")
        return regular.unionByName(crowded.select(*regular.columns)).distinct()

    # The groups.

    def _components(self, name: str, pairs: DataFrame) -> tuple[DataFrame, int]:
        rounds = 0

        def made() -> DataFrame:
            nonlocal rounds
            found, rounds = components(
                pairs, driver_pairs=self.driver_pairs, checkpoint=lambda number, edges: self.stages.table(f"{name}-{number}", lambda: edges)
            )
            return found

        return self.stages.table(name, made), rounds

    def _ranked(self, pairs: DataFrame, found: DataFrame) -> DataFrame:
        """Pairs in the order of their components, with what is known of both pages."""
        from pyspark.sql import functions as f

        rows = pairs.join(found.select(f.col("node").alias("left"), "component"), "left")
        sets = self.sets()
        in_crowd = f.lit(False)
        for end in ("left", "right"):
            named = sets.select(
                f.col("first").alias(end),
                f.col("set_class").alias(f"{end}_class"),
                f.col("set_rank").alias(f"{end}_rank"),
                f.col("best").alias(f"{end}_best"),
            )
            rows = rows.join(named, end)
            if self.has_crowds():
                members = self.crowds().select(f.col("position").alias(end)).distinct()
                rows = rows.join(members.withColumn(f"{end}_in_crowd", f.lit(True)), end, "left")
                rows = rows.withColumn(f"{end}_in_crowd", f.coalesce(f"{end}_in_crowd", f.lit(False)))
            else:
                rows = rows.withColumn(f"{end}_in_crowd", in_crowd)
        return rows.repartition("component").sortWithinPartitions("component", "left", "right")

    def accepted(self) -> DataFrame:
        """Near-duplicates, also those that crowds kept apart."""
        from pyspark.sql import functions as f

        accepted = self.scores().where("accepted")
        if self.plan["chains"] or not self.has_crowds():
            return accepted
        found, _ = self._components("25-components", accepted.select("left", "right"))
        tried: DataFrame | None = None
        for number in range(self.plan["settling_rounds"]):
            rows = accepted if tried is None else accepted.unionByName(tried)
            at, before = number, rows
            wanted = self.stages.table(
                f"26-settling-{at}", lambda: self._wanted(apply("settle", self.known(), self._ranked(before, found)).distinct())
            )
            scored = self.stages.table(f"26-settled-{at}", lambda: self._compared(wanted, self.compared_features(), all=True))
            more = scored.where("accepted").join(accepted.select("left", "right"), ["left", "right"], "left_anti")
            if not self.stages.value(f"26-more-{at}", lambda: bool(more.limit(1).count())):
                break
            accepted = accepted.unionByName(more.select(*accepted.columns))
            again = scored.withColumn("accepted", f.lit(False)).select(*accepted.columns)
            tried = again if tried is None else tried.unionByName(again)
        return accepted

    def verified(self) -> DataFrame:
        """The pairs that groups are made of."""

        def made() -> DataFrame:
            from pyspark.sql import functions as f

            accepted = self.accepted()
            if not self.plan["has_against"]:
                return accepted
            # Pages of another corpus are not compared with each other, and are not dropped for ours.
            sets = self.sets().select("first", (f.shiftright("set_class", INPUT_BIT) == 0).alias("theirs"))
            for end in ("left", "right"):
                accepted = accepted.join(sets.select(f.col("first").alias(end), f.col("theirs").alias(f"{end}_theirs")), end)
            left_stays, right_stays = self._can_stand_for("left"), self._can_stand_for("right")
            left, right = f.col("left_theirs"), f.col("right_theirs")
            kept = f.when(left & right, f.lit(False)).when(left, right_stays).when(right, left_stays).otherwise(f.lit(True))
            return accepted.where(kept).drop("left_theirs", "right_theirs")

        return self.stages.table("27-verified", made)

    def _can_stand_for(self, end: str) -> Column:
        """Whether the other page of a pair can stand for the one at this end."""
        from pyspark.sql import functions as f

        least = self.plan["stands_from"]
        if least is None:
            return f.lit(True)
        is_part = (end == "left") != self.plan["drops_containers"]
        return f.col("left_in_right" if is_part else "right_in_left") >= f.lit(least)

    def components(self) -> DataFrame:
        """For every page of a pair the first of its component."""
        found, self.rounds = self._components("28-components", self.verified().select("left", "right"))
        return found

    def stars(self) -> DataFrame:
        """Sets that are dropped, and those that they are dropped for."""

        def made() -> DataFrame:
            ranked = self._ranked(self.verified(), self.components())
            if not self.plan["chains"]:
                return apply("stars", self.known(), ranked)
            return self._chains(apply("chains", self.known(), ranked))

        return self.stages.table("29-stars", made)

    def _chains(self, chosen: DataFrame) -> DataFrame:
        """The links of pages to the best of their components; those that were not compared are compared now."""
        from pyspark.sql import functions as f

        ends = chosen.select(f.col("left").alias("page"), f.col("right").alias("target"))
        ends = self.stages.table("30-chains", lambda: ends)
        pairs = ends.select("page", "target", f.least("page", "target").alias("left"), f.greatest("page", "target").alias("right"))
        known = self.verified().select("left", "right", "similarity", "left_in_right", "right_in_left")
        unknown = pairs.select("left", "right").distinct().join(known, ["left", "right"], "left_anti")
        needed = unknown.selectExpr("left as position").unionAll(unknown.selectExpr("right as position"))
        features = self.features("31-chain-features", needed)
        scored = self._compared(unknown, features, all=True).select(*known.columns)
        links = pairs.join(known.unionByName(scored), ["left", "right"])
        forward = f.when(f.col("page") == f.col("left"), f.col("left_in_right")).otherwise(f.col("right_in_left"))
        back = f.when(f.col("page") == f.col("left"), f.col("right_in_left")).otherwise(f.col("left_in_right"))
        least = self.plan["stands_from"]
        if least is None:
            similarity, is_containment = f.col("similarity"), f.lit(False)
        elif self.plan["drops_containers"]:
            similarity, is_containment = back, f.lit(True)
        else:
            similarity = forward
            is_containment = (forward >= least) & ((back < least) | ((forward >= 1.0) & (back < 1.0)))
        return links.select("page", "target", similarity.alias("similarity"), is_containment.alias("is_containment"))

    def fates(self) -> DataFrame:
        """What became of every page."""

        def made() -> DataFrame:
            from pyspark.sql import functions as f

            pages = self.pages().select("position", "tokens", "text_hash", "scope", "original")
            members = self.members().select("position", "first", f.col("best").alias("own_best"))
            stars = self.stars().withColumnRenamed("page", "first")
            bests = self.sets().select(f.col("first").alias("target"), f.col("best").alias("target_best"))
            rows = pages.join(members, "position").join(stars.join(bests, "target"), "first", "left")
            rows = rows.withColumn("kept", f.coalesce("target_best", "own_best"))
            kept_texts = pages.select(
                f.col("position").alias("kept"), f.col("text_hash").alias("kept_hash"), f.col("scope").alias("kept_scope"), f.col("original").alias("kept_original")
            )
            rows = rows.join(kept_texts, "kept")
            is_kept = f.col("kept") == f.col("position")
            is_same = f.col("target").isNull()
            is_exact = f.col("text_hash") == f.col("kept_hash")
            standing = rows.where(~is_kept).select(f.col("kept").alias("position")).distinct().withColumn("stands", f.lit(True))
            rows = rows.join(standing, "position", "left")
            kind = (
                f.when(is_kept & (f.col("tokens") == 0), "empty")
                .when(is_kept & f.col("stands").isNotNull(), "representative")
                .when(is_kept & (f.col("tokens") < self.plan["min_tokens"]), "short")
                .when(is_kept, "unique")
                .when(is_same & is_exact, "exact")
                .when(is_same, "same_core")
                .when(f.col("is_containment"), "contained")
                .otherwise("near")
            )
            similarity = f.when(is_kept | is_same, f.lit(1.0)).otherwise(f.col("similarity"))
            known = f.when(is_kept | (is_same & is_exact), f.lit(1.0))
            return rows.select(
                "position",
                "kept",
                "first",
                similarity.alias("similarity"),
                kind.alias("kind"),
                known.alias("page_similarity"),
                "text_hash",
                "kept_hash",
                "scope",
                "kept_scope",
                f.coalesce("original", "position").alias("read_at"),
                f.coalesce("kept_original", "kept").alias("kept_read_at"),
            )

        return self.stages.table("32-fates", made)

    # The similarity of whole pages, beside that of what was compared.

    def _with_texts(self, pairs: DataFrame) -> DataFrame:
        """Pairs with what is known of both whole texts."""
        from pyspark.sql import functions as f

        facts = self.pages().select("position", "text_hash", "scope", f.coalesce("original", "position").alias("read_at"))
        for end, prefix in (("left", ""), ("right", "kept_")):
            named = facts.select(
                f.col("position").alias(end),
                f.col("text_hash").alias("text_hash" if not prefix else "kept_hash"),
                f.col("scope").alias(f"{prefix}scope"),
                f.col("read_at").alias(f"{prefix}read_at"),
            )
            pairs = pairs.join(named, end)
        return pairs

    @staticmethod
    def _known_similarity() -> Column:
        from pyspark.sql import functions as f

        def is_whole(name: str) -> Column:
            return f.col(name).isNull() | (f.col(name) == "page")

        both = is_whole("scope") & is_whole("kept_scope")
        same = (f.col("text_hash") != 0) & (f.col("text_hash") == f.col("kept_hash"))
        return f.when(both, f.col("similarity")).when(same, f.lit(1.0))

    def page_similarities(self) -> DataFrame:
        """The similarity of two texts, by their hashes."""

        def made() -> DataFrame:
            from pyspark.sql import functions as f

            names = ["similarity", "text_hash", "kept_hash", "scope", "kept_scope", "read_at", "kept_read_at"]
            pairs = self.verified().select("left", "right", "similarity").unionAll(self.near_misses().select("left", "right", "similarity"))
            rows = self._with_texts(pairs).select(*names)
            rows = rows.unionByName(self.fates().where("page_similarity is null").select(*names))
            unknown = rows.where(self._known_similarity().isNull() & (f.col("text_hash") != 0) & (f.col("kept_hash") != 0))
            is_ordered = f.col("text_hash") <= f.col("kept_hash")

            def in_order(one: str, other: str) -> Column:
                return f.when(is_ordered, f.col(one)).otherwise(f.col(other))

            texts = unknown.select(
                in_order("text_hash", "kept_hash").alias("one"),
                in_order("kept_hash", "text_hash").alias("other"),
                in_order("read_at", "kept_read_at").alias("one_at"),
                in_order("kept_read_at", "read_at").alias("other_at"),
            )
            texts = texts.groupBy("one", "other").agg(f.min("one_at").alias("left"), f.min("other_at").alias("right"))
            texts = self.stages.table("33-texts", lambda: texts)
            needed = texts.selectExpr("left as position").unionAll(texts.selectExpr("right as position"))
            features = self.features("34-whole-features", needed, whole=True)
            scored = self._compared(texts.select("left", "right").distinct(), features, whole=True)
            scored = scored.select("left", "right", f.col("similarity").alias("page_similarity"))
            return texts.join(scored, ["left", "right"]).select("one", "other", "page_similarity")

        return self.stages.table("35-page-similarities", made)

    def with_page_similarity(self, rows: DataFrame) -> DataFrame:
        """Rows with texts, and the similarity of these."""
        from pyspark.sql import functions as f

        found = self.page_similarities().withColumnRenamed("page_similarity", "found")
        is_pair = (f.least("text_hash", "kept_hash") == f.col("one")) & (f.greatest("text_hash", "kept_hash") == f.col("other"))
        rows = rows.join(found, is_pair, "left")
        known = [f.col("page_similarity")] if "page_similarity" in rows.columns else []
        return rows.withColumn("page_similarity", f.coalesce(*known, self._known_similarity(), "found")).drop("found", "one", "other")
