"""Who is worth comparing: pages → candidates, and what they are compared by.

Of pages with the same words only one, the *first* of its set, goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lookalike import _lookalike
from lookalike.spark._graph import components
from lookalike.spark._parts import apply
from lookalike.spark._reading import Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Searching(Reading):
    """The search."""

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
        equal = in_crowd.select(
            f.col("position").alias("left"),
            none.alias("right"),
            f.lit(-1).cast("bigint").alias("band"),
            f.col("set_hash").alias("key"),
        )
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
        meetings = apply("meetings", self.known(), lists).groupBy("left", "right")
        met = meetings.agg(f.count("*").alias("shared"), f.first("rest").alias("rest"), f.first("needed").alias("needed"))
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
        grouped = found.select(
            f.col("node").alias("left"), none.alias("right"), f.lit(0).cast("bigint").alias("band"), f.col("component").alias("key")
        )
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
            named = facts.select(
                f.col("position").alias(end), f.col("tokens").alias(f"{end}_tokens"), f.col("is_input").alias(f"{end}_input")
            )
            pairs = pairs.join(named, end)
        if ratio is not None:
            shorter, longer = f.least("left_tokens", "right_tokens"), f.greatest("left_tokens", "right_tokens", f.lit(1))
            pairs = pairs.where(shorter.cast("double") / longer.cast("double") >= f.lit(ratio))
        if is_between:
            pairs = pairs.where("left_input <> right_input")
        return pairs.drop("left_tokens", "right_tokens", "left_input", "right_input")

    def _components(self, name: str, pairs: DataFrame) -> tuple[DataFrame, int]:
        rounds = 0

        def made() -> DataFrame:
            nonlocal rounds
            found, rounds = components(
                pairs,
                driver_pairs=self.driver_pairs,
                checkpoint=lambda number, edges: self.stages.table(f"{name}-{number}", lambda: edges),
            )
            return found

        return self.stages.table(name, made), rounds
