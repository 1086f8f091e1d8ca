"""The engine inside a Spark task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lookalike import _lookalike

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

#: Where executors find the package if it was sent to them (:func:`lookalike.spark.session`).
PACKAGE = "lookalike-package"


def _worker(name: str, spec: str) -> Callable[[Iterator[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    # What is sent to an executor must not need this package until it has found it: names come from in here alone.
    package = PACKAGE

    def work(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import os
        import sys

        from pyspark import SparkFiles

        sent = os.path.join(SparkFiles.getRootDirectory(), package)
        if os.path.isdir(sent) and sent not in sys.path:
            sys.path.insert(0, sent)
        from lookalike import _lookalike

        return _lookalike.run_part(name, spec, batches)

    return work


def apply(name: str, spec: dict[str, Any], rows: DataFrame) -> DataFrame:
    """The rows that a part of the engine makes of ``rows``."""
    return rows.mapInArrow(_worker(name, json.dumps(spec)), _lookalike.part_columns(name))
