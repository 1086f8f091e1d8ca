"""The main job on Spark, stage by stage.

Every decision is made by the engine (:mod:`lookalike.spark._parts`); here rows are sorted, grouped and joined between its parts. Each
method is a stage, and asks for those before it: :mod:`~lookalike.spark._reading`, :mod:`~lookalike.spark._searching`, then the comparison
and the groups in this file.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike.spark._parts import apply
from lookalike.spark._reading import INPUT_BIT
from lookalike.spark._searching import Searching

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def job_key(plan: dict[str, Any]) -> str:
    """What decides a result: the settings, and what is read."""
    sources = [[source["path"], source["version"]] for unit in plan["units"] for source in unit["sources"]]
    text = json.dumps([_lookalike.__version__, plan["config_hash"], plan["spec"], sources], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Job(Searching):
    """The comparison and the groups."""

    # The comparison.

    def _compared(self, pairs: DataFrame, features: DataFrame, **more: Any) -> DataFrame:
        """What pairs have in common."""
        from pyspark.sql import functions as f

        rows = pairs.select("left", "right")
        for end in ("left", "right"):
            parts = [f.col(name).alias(f"{end}_{name}") for name in ("features", "weights", "sketch")]
            rows = rows.join(features.select(f.col("position").alias(end), *parts), end)
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
        regular = near.join(
            self.candidates().where("right is not null").select("left", "right").distinct(), ["left", "right"], "left_semi"
        )
        crowded = near.join(self.crowd_pairs(), ["left", "right"])
        closest = Window.partitionBy("member").orderBy(f.desc("similarity"), "left", "right")
        crowded = crowded.withColumn("place", f.row_number().over(closest)).where("place = 1").drop("place", "member")
        return regular.unionByName(crowded.select(*regular.columns)).distinct()

    # The groups.

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
        found, _ = self._components("28-components", self.verified().select("left", "right"))
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
                f.col("position").alias("kept"),
                f.col("text_hash").alias("kept_hash"),
                f.col("scope").alias("kept_scope"),
                f.col("original").alias("kept_original"),
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
            pairs = (
                self.verified()
                .select("left", "right", "similarity")
                .unionAll(self.near_misses().select("left", "right", "similarity"))
            )
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
        return rows.withColumn("page_similarity", f.coalesce(*known, self._known_similarity(), "found")).drop(
            "found", "one", "other"
        )
