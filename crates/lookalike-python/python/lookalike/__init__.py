"""Find near-duplicate pages and documents, with exact evidence for every decision.

>>> import lookalike
>>> story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 5
>>> other = "Prices of bread and milk rose again this spring, and bakers say that flour is why. " * 5
>>> result = lookalike.dedup([story, other, story + "Photo: a reader."])
>>> result.keep_mask().tolist()
[True, True, False]
>>> result.explain("2").kept_page.id
'0'

The guide is docs/python.md; ``help(lookalike.dedup)`` has every setting.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookalike._compare import Comparison, compare
    from lookalike._dedup import dedup
    from lookalike._errors import (
        CorruptFile,
        InputError,
        InputNotFound,
        InternalError,
        InvalidSetting,
        Locked,
        LookalikeError,
        OutputExists,
        StorageError,
    )
    from lookalike._index import HammingIndex, Match
    from lookalike._lookalike import Table, __version__
    from lookalike._record import Record
    from lookalike._refine import Folded, refine
    from lookalike._result import Result
    from lookalike._sketches import MinHash, SimHash, Sketcher

__all__ = [
    "Comparison",
    "CorruptFile",
    "Folded",
    "HammingIndex",
    "InputError",
    "InputNotFound",
    "InternalError",
    "InvalidSetting",
    "Locked",
    "LookalikeError",
    "Match",
    "MinHash",
    "OutputExists",
    "Record",
    "Result",
    "SimHash",
    "Sketcher",
    "StorageError",
    "Table",
    "__version__",
    "compare",
    "dedup",
    "refine",
]

# Everything is imported when it is first used: lookalike.client needs neither the engine nor numpy.
_MODULES = {
    "Comparison": "_compare",
    "CorruptFile": "_errors",
    "Folded": "_refine",
    "HammingIndex": "_index",
    "InputError": "_errors",
    "InputNotFound": "_errors",
    "InternalError": "_errors",
    "InvalidSetting": "_errors",
    "Locked": "_errors",
    "LookalikeError": "_errors",
    "Match": "_index",
    "MinHash": "_sketches",
    "OutputExists": "_errors",
    "Record": "_record",
    "Result": "_result",
    "SimHash": "_sketches",
    "Sketcher": "_sketches",
    "StorageError": "_errors",
    "Table": "_lookalike",
    "__version__": "_lookalike",
    "compare": "_compare",
    "dedup": "_dedup",
    "refine": "_refine",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'lookalike' has no attribute {name!r}")
    value = getattr(import_module(f"lookalike.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
