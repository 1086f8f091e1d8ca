"""What a run found."""

from __future__ import annotations

import html
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike
from lookalike._compare import Comparison
from lookalike._errors import InputError
from lookalike._lookalike import Table
from lookalike._progress import Report, shown
from lookalike._record import Record
from lookalike._scratch import Scratch
from lookalike._sources import PathLike

if TYPE_CHECKING:
    # Only where it is needed: it takes longer to load than everything else, and the command line does without it.
    import numpy
    from numpy.typing import NDArray

# Groups that a notebook shows.
_SHOWN_GROUPS = 10


class Result:
    """The result of :func:`lookalike.dedup`: tables, counts, and why each document was dropped or kept.

    The tables are Arrow: pyarrow, polars, pandas and DuckDB take them over without copying.

    >>> import lookalike
    >>> story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 5
    >>> result = lookalike.dedup([story, story + "Photo: a reader."])
    >>> import pyarrow
    >>> pyarrow.table(result.pairs).select(["left", "right"]).to_pylist()
    [{'left': '0', 'right': '1'}]

    :meth:`open` reads a result that was written before, by Python or by the command line.
    """

    def __init__(self, directory: PathLike) -> None:
        self.directory: Path = Path(os.fspath(directory))
        self._scratch: list[Scratch] = []
        self._rows: int | None = None

    @classmethod
    def open(cls, directory: PathLike) -> Result:
        """The result in a directory.

        Raises:
            InputError: There is no complete result.
        """
        result = cls(directory)
        if not (result.directory / "summary.json").is_file():
            raise InputError(f"{result.directory}: is not a complete lookalike result; it has no summary.json")
        return result

    @classmethod
    def _made(cls, directory: Path, scratch: Scratch, rows: int | None) -> Result:
        result = cls(directory)
        # The texts of a source in memory are here, and the result itself, if it is temporary.
        result._scratch = [scratch]
        result._rows = rows
        return result

    @cached_property
    def summary(self) -> Record:
        """The counts and settings: ``pages``, ``kept``, ``dropped``, ``clusters``, ``pairs``, ``skipped``, …"""
        return Record(Record.from_json((self.directory / "summary.json").read_text(encoding="utf-8")))

    @cached_property
    def clusters(self) -> Table:
        """What became of every document: ``id``, ``cluster``, ``kept``, ``kept_id``, ``similarity``, ``kind``, …"""
        return self.table("clusters")

    @cached_property
    def pairs(self) -> Table:
        """The verified pairs: ``left``, ``right``, ``similarity``, ``left_in_right``, ``right_in_left``, ``score``, …"""
        return self.table("pairs")

    @cached_property
    def pages(self) -> Table:
        """Every document that was read, in the order of ``clusters``: ``id``, ``source``, ``record``, ``tokens``, …"""
        return self.table("pages")

    @cached_property
    def near_misses(self) -> Table:
        """Pairs that were compared and are just below the threshold; the columns are those of ``pairs``."""
        return self.table("near_misses")

    def table(self, name: str) -> Table:
        """A table of the result by the name of its file: ``"frames"``, ``"against"``, …"""
        return _lookalike.read_table(str(self.directory / f"{name}.parquet"))

    @property
    def report(self) -> Path:
        """The page for people, to open in a browser."""
        return self.directory / "report.html"

    def keep_mask(self) -> NDArray[numpy.bool_]:
        """Which rows to keep: one value for each row of the source, in its order.

        Rows that could not be used, such as nulls, are not kept. Where the source was files, there is one value for each
        row of ``pages``.

        >>> import lookalike, pyarrow
        >>> story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 5
        >>> table = pyarrow.table({"text": [story, None, story.upper()], "n": [1, 2, 3]})
        >>> table.filter(lookalike.dedup(table).keep_mask()).column("n").to_pylist()
        [1]
        """
        return _lookalike.keep_mask(str(self.directory), self._rows)

    def explain(self, a: object, b: object | None = None) -> Any:
        """Why a document was dropped or kept; or, of two documents, what every method says of them.

        Documents are named by id or URL.

        >>> import lookalike
        >>> story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 5
        >>> result = lookalike.dedup([story, story + "Photo: a reader."])
        >>> result.explain(1).evidence.needed
        '≥ 0.7'
        >>> [decision.method for decision in result.explain(0, 1).methods if decision.near_duplicate]
        ['minhash', ...]

        Returns:
            A :class:`Record` with ``reason``, ``kept_page``, ``similarity``, ``evidence`` and ``group``; of two documents a
            :class:`Comparison`.
        """
        if b is not None:
            return Comparison.from_engine(_lookalike.compare_in(str(self.directory), str(a), str(b)))
        found = Record.from_json(_lookalike.explain(str(self.directory), [str(a)]))
        return found.pages[0]

    def recluster(
        self,
        *,
        threshold: float | None = None,
        within_site: float | None = None,
        between_sites: float | None = None,
        cluster: str | None = None,
        keep: str | None = None,
        prefer: list[str] | None = None,
        output: PathLike | None = None,
        replace: bool = False,
        progress: bool | Report | None = None,
    ) -> Result:
        """Another result from the pairs already verified: stricter, in other groups, or keeping other documents.

        >>> import lookalike
        >>> story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. "
        >>> loose = lookalike.dedup([story, story + "Photo: a reader."])
        >>> loose.summary.kept, loose.recluster(threshold=0.95).summary.kept
        (1, 2)
        """
        settings = {"cluster": cluster, "keep": keep, "prefer": prefer, "no_kept": output is None, "replace": replace}
        with Scratch() as scratch:
            directory = Path(os.fspath(output)) if output is not None else scratch.path / "result"
            thresholds = (threshold, within_site, between_sites)
            with shown(progress) as report:
                _lookalike.recluster(str(self.directory), str(directory), thresholds, settings, report)
            result = Result._made(directory, scratch.keep(), self._rows)
            result._scratch += self._scratch
            return result

    def __repr__(self) -> str:
        summary = self.summary
        return (
            f"<lookalike.Result: {summary.pages:,} documents, {summary.kept:,} kept, {summary.dropped:,} dropped, "
            f"{summary.clusters:,} groups, in {self.directory}>"
        )

    def _repr_html_(self) -> str:
        summary = self.summary
        counts = {
            "documents": summary.pages,
            "kept": summary.kept,
            "dropped": summary.dropped,
            "groups": summary.clusters,
            "verified pairs": summary.pairs,
            "skipped": sum(summary.skipped.values()),
        }
        heads = "".join(f"<th>{name}</th>" for name in counts)
        cells = "".join(f"<td>{count:,}</td>" for count in counts.values())
        rows = "".join(
            f"<tr><td>{html.escape(group.cluster)}</td><td>{group.size:,}</td><td>{group.weakest_similarity:.4f}</td></tr>"
            for group in summary.large_clusters[:_SHOWN_GROUPS]
        )
        titles = "<tr><th>unusually large group</th><th>documents</th><th>least similarity</th></tr>"
        largest = f"<table>{titles}{rows}</table>" if rows else ""
        return f"<table><tr>{heads}</tr><tr>{cells}</tr></table>{largest}<p>{html.escape(str(self.report))}</p>"
