"""Fingerprints on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from lookalike import _lookalike
from lookalike._lookalike import Table
from lookalike._scratch import Scratch
from lookalike._sources import PathLike

if TYPE_CHECKING:
    # Only where it is needed: it takes longer to load than everything else, and the command line does without it.
    import numpy
    from numpy.typing import NDArray

Fingerprints: TypeAlias = "NDArray[numpy.uint64] | Iterable[int]"


class Match(NamedTuple):
    """A row near a query."""

    id: Any
    distance: int
    fingerprint: int


class HammingIndex:
    """Which fingerprints are near this one? Exact: nothing within the radius is missed.

    >>> import lookalike
    >>> index = lookalike.HammingIndex(radius=3)
    >>> index.add([0b1111, 0xFFFF_0000], ids=["a", "b"])
    >>> index.query(0b1110)
    [Match(id='a', distance=1, fingerprint=15)]

    An index without a path is temporary; :meth:`save` writes it to a directory, :meth:`open` maps it into memory again, and
    ``lookalike index query`` and ``lookalike serve`` read the same files.

    >>> import tempfile
    >>> directory = tempfile.mkdtemp() + "/seen"
    >>> index.save(directory)
    >>> len(lookalike.HammingIndex.open(directory))
    2

    Args:
        radius: Differing bits up to which nothing is missed.
        path: Directory of the index.
        ids: Whether ids are text or number; by default what the first ids are, and numbers if there are none.
        force: Replace an index that is there.
    """

    def __init__(
        self, radius: int = 3, path: PathLike | None = None, *, ids: str | None = None, force: bool = False
    ) -> None:
        self._scratch = Scratch().keep() if path is None else None
        self._path = Path(os.fspath(path)) if path is not None else None
        self._radius, self._force, self._is_written = radius, force, True
        self._index: _lookalike.HammingIndex | None = None
        if ids is not None:
            self._index = self._create(ids)

    def _create(self, ids: str) -> _lookalike.HammingIndex:
        directory = self._path or (self._scratch.path / "index" if self._scratch else None)
        return _lookalike.HammingIndex.create(str(directory), self._radius, ids, self._force)

    @property
    def _opened(self) -> _lookalike.HammingIndex:
        if self._index is None:
            self._index = self._create("number")
        return self._index

    @classmethod
    def build(
        cls,
        path: PathLike,
        fingerprints: Fingerprints,
        ids: Iterable[str] | Iterable[int] | None = None,
        *,
        radius: int = 3,
        force: bool = False,
    ) -> HammingIndex:
        """An index of many fingerprints in a directory.

        >>> import lookalike, numpy, tempfile
        >>> fingerprints = numpy.arange(1000, dtype="uint64") << numpy.uint64(8)
        >>> index = lookalike.HammingIndex.build(tempfile.mkdtemp() + "/seen", fingerprints)
        >>> index.query(5 << 8, radius=0)[0].id
        5
        """
        index = cls(radius, path, force=force)
        index.add(fingerprints, ids)
        index.flush()
        return index

    @classmethod
    def open(
        cls, path: PathLike, *, writable: bool = False, check: bool = False, skip_damaged: bool = False
    ) -> HammingIndex:
        """The index in a directory, made by Python or by the command line.

        Args:
            path: The directory.
            writable: Rows are to be added. No other process can write meanwhile.
            check: Check all checksums now, not when a part is first read.
            skip_damaged: Leave out parts that cannot be used.

        Raises:
            CorruptFile: It is damaged, or was written by a version that is not known.
        """
        index = cls.__new__(cls)
        index._scratch, index._path, index._is_written = None, Path(os.fspath(path)), writable
        index._index = _lookalike.HammingIndex.open(str(index._path), writable, check, skip_damaged)
        return index

    def add(self, fingerprints: Fingerprints, ids: Iterable[str] | Iterable[int] | None = None) -> None:
        """Adds rows. Without ids, they are numbered, from 0 on.

        Rows can be queried at once; :meth:`flush` writes those that are only in memory.
        """
        given: list[object] | None = None if ids is None else list(ids)
        if given and self._index is None:
            self._index = self._create("text" if isinstance(given[0], str) else "number")
        self._opened.add(fingerprints, given)

    def query(self, fingerprint: int, radius: int | None = None, limit: int = 10) -> list[Match]:
        """The rows near a fingerprint, the nearest first, at most ``limit``."""
        return [Match(*row) for row in self._opened.query(int(fingerprint), radius, limit)]

    def query_all(self, fingerprints: Fingerprints, radius: int | None = None, limit: int = 0) -> Table:
        """The rows near many fingerprints: a table of ``query`` (its place), ``id`` and ``distance``.

        Args:
            fingerprints: The queries.
            radius: Differing bits; that of the index by default.
            limit: Rows for each query, or 0 for all.
        """
        return self._opened.query_all(fingerprints, radius, limit)

    def flush(self) -> None:
        """Writes what is only in memory to the directory."""
        self._opened.flush()

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Writes all rows to an index in another directory."""
        self._opened.save(os.fspath(path), force)

    def close(self) -> None:
        """Writes what is only in memory, unless the index was opened for reading, and releases the directory."""
        if self._index is not None:
            if self._is_written and self._scratch is None:
                self._index.flush()
            self._index.close()
        if self._scratch is not None:
            self._scratch.delete()

    @property
    def radius(self) -> int:
        """Differing bits up to which nothing is missed."""
        return self._opened.radius

    @property
    def directory(self) -> Path:
        """Where it is."""
        return Path(self._opened.directory)

    def __len__(self) -> int:
        return len(self._opened)

    def __enter__(self) -> HammingIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._index is None:
            return f"<lookalike.HammingIndex: empty, radius {self._radius}>"
        return f"<lookalike.HammingIndex: {len(self):,} rows, radius {self.radius}, in {self.directory}>"
