"""Sketches: a few numbers that stand for a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from lookalike import _lookalike
from lookalike._errors import InvalidSetting
from lookalike._sources import ArrowStream

if TYPE_CHECKING:
    # Only where it is needed: it takes longer to load than everything else, and the command line does without it.
    import numpy
    from numpy.typing import NDArray

Texts: TypeAlias = "Iterable[str] | ArrowStream"

_MOST_BANDS = 256


class Sketcher:
    """Sketches of any method, as 32-bit words, and the features that they are made of.

    >>> import lookalike
    >>> sketcher = lookalike.Sketcher("bloom")
    >>> sketcher.sketch("Once upon a time there was a page").shape == (sketcher.words,)
    True
    >>> len(lookalike.Sketcher("minhash", ngram=2).features("one two three four"))
    3

    Args:
        method: The method, as in :func:`lookalike.dedup`.
        threads: Threads of :meth:`sketch_all`; one for each processor by default.
        **parameters: Parameters of the method, and ``content``, ``keep_case``, ``mask``.
    """

    def __init__(self, method: str = "minhash", *, threads: int | None = None, **parameters: Any) -> None:
        self._sketcher = _lookalike.Sketcher(method, {**parameters, "threads": threads})

    @property
    def words(self) -> int:
        """32-bit words of a sketch."""
        return self._sketcher.words

    def sketch(self, text: str) -> Any:
        """The sketch of a text."""
        return self._sketcher.sketch(text)

    def sketch_all(self, texts: Texts) -> Any:
        """The sketches of texts, one per row: of strings, or of an Arrow array of strings (pyarrow, polars)."""
        return self._sketcher.sketch_all(texts)

    def features(self, text: str) -> NDArray[numpy.uint64]:
        """The 64-bit features of a text, each once, in ascending order."""
        return self._sketcher.features(text)


class MinHash(Sketcher):
    """MinHash of word n-grams: the share of equal values of two sketches estimates their Jaccard similarity.

    >>> import lookalike
    >>> minhash = lookalike.MinHash(num_perm=128)
    >>> sketches = minhash.sketch_all(["one two three four five six", "one two three four five six"])
    >>> sketches.shape, sketches.dtype.name
    ((2, 128), 'uint32')
    >>> minhash.similarity(sketches[0], sketches[1])
    1.0

    A text without words has no features, and all values of its sketch are the largest there is.

    Args:
        num_perm: Values in a sketch.
        ngram: Words in a feature.
        seed: Seeds the functions; sketches with different seeds cannot be compared.
        threads: Threads of :meth:`sketch_all`; one for each processor by default.
        **parameters: Other parameters of the method, and ``content``, ``keep_case``, ``mask``.
    """

    def __init__(
        self,
        num_perm: int = 128,
        *,
        ngram: int = 5,
        seed: int | None = None,
        threads: int | None = None,
        **parameters: Any,
    ) -> None:
        # Bands decide nothing about a sketch but its length.
        rows = next((rows for rows in (1, 2, 4, 8) if num_perm % rows == 0 and num_perm // rows <= _MOST_BANDS), None)
        if rows is None or num_perm < 1:
            raise InvalidSetting(f"num_perm={num_perm}: must be between 1 and 256, or a multiple of 2, 4 or 8 up to 1024")
        bands = num_perm // rows
        super().__init__("minhash", threads=threads, bands=bands, rows=rows, ngram=ngram, seed=seed, **parameters)

    @property
    def num_perm(self) -> int:
        """Values in a sketch."""
        return self.words

    def sketch(self, text: str) -> NDArray[numpy.uint32]:
        """The min-values of a text."""
        return self._sketcher.sketch(text)

    def sketch_all(self, texts: Texts) -> NDArray[numpy.uint32]:
        """The min-values of texts, one text per row."""
        return self._sketcher.sketch_all(texts)

    @staticmethod
    def similarity(a: NDArray[numpy.uint32], b: NDArray[numpy.uint32]) -> Any:
        """The estimated Jaccard similarity of two sketches, or of arrays of them, row by row."""
        import numpy

        share = numpy.mean(numpy.asarray(a) == numpy.asarray(b), axis=-1)
        return float(share) if share.ndim == 0 else share


class SimHash(Sketcher):
    """SimHash fingerprints of 64 bits: near-duplicates differ in few of them.

    >>> import lookalike
    >>> simhash = lookalike.SimHash()
    >>> fingerprint = simhash.sketch("The ferry had left the harbour before the storm reached the town.")
    >>> lookalike.SimHash.distance(fingerprint, fingerprint ^ 0b101)
    2
    >>> simhash.sketch_all(["one text", "another text"]).dtype.name
    'uint64'

    Args:
        ngram: Words in a feature; 0 for content words and phrases of two.
        weights: What a feature weighs: tf or none.
        threads: Threads of :meth:`sketch_all`; one for each processor by default.
        **parameters: ``content``, ``keep_case``, ``mask``.
    """

    def __init__(
        self, *, ngram: int = 0, weights: str = "tf", threads: int | None = None, **parameters: Any
    ) -> None:
        super().__init__("simhash", threads=threads, ngram=ngram, weights=weights, **parameters)

    def sketch(self, text: str) -> int:
        """The fingerprint of a text."""
        low, high = self._sketcher.sketch(text)[:2]
        return int(high) << 32 | int(low)

    def sketch_all(self, texts: Texts) -> NDArray[numpy.uint64]:
        """The fingerprints of texts."""
        import numpy

        halves = self._sketcher.sketch_all(texts).astype(numpy.uint64)
        return halves[:, 1] << numpy.uint64(32) | halves[:, 0]

    @staticmethod
    def distance(a: Any, b: Any) -> Any:
        """The number of differing bits of two fingerprints, or of arrays of them."""
        if isinstance(a, int) and isinstance(b, int):
            return (a ^ b).bit_count()
        import numpy

        differing = numpy.asarray(a, dtype=numpy.uint64) ^ numpy.asarray(b, dtype=numpy.uint64)
        differing = numpy.ascontiguousarray(differing)
        bits = numpy.unpackbits(differing.reshape(-1, 1).view(numpy.uint8), axis=1).sum(axis=1)
        return bits.reshape(differing.shape)
