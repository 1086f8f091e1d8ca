"""What people hand over → files that the engine reads."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeGuard

from lookalike import _lookalike
from lookalike._errors import InputError


class ArrowStream(Protocol):
    """Anything with the Arrow C stream interface: tables of pyarrow, polars, pandas, DuckDB, …"""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


PathLike: TypeAlias = "str | os.PathLike[str]"
Source: TypeAlias = "PathLike | Iterable[os.PathLike[str]] | ArrowStream | Iterable[str | None] | Iterable[Mapping[str, Any] | None]"


class Input(NamedTuple):
    """Files, and what they were made from."""

    paths: list[str]
    # The number of rows of a source in memory; none for paths.
    rows: int | None


def prepared(source: Source, directory: Path, settings: Mapping[str, Any], is_whole: bool) -> Input:
    """The files of a source. What is in memory is written to ``directory``; without ``is_whole``, only the columns
    that are looked at."""
    if isinstance(source, (str, os.PathLike)):
        return Input([os.fspath(source)], None)
    if isinstance(source, (bytes, Mapping)):
        message = f"a source of the type {type(source).__name__} is not a list of documents; put a single one into [ ]"
        raise InputError(message)
    stream = _stream(source)
    if stream is not None:
        path = directory / "table.arrows"
        rows = _lookalike.spool_arrow(stream, path, dict(settings), is_whole)
        return Input([str(path)], rows)
    if not isinstance(source, Iterable):
        message = (
            f"a source of the type {type(source).__name__} cannot be read; give a path, a table with the Arrow C "
            "stream interface, or an iterable of strings or dicts"
        )
        raise InputError(message)
    items = iter(source)
    for first in items:
        break
    else:
        raise InputError("the source is empty: there is nothing to compare")
    if isinstance(first, os.PathLike):
        return Input([os.fspath(path) for path in chain([first], items) if _is_path(path)], None)
    if isinstance(first, str) and _is_file(first):
        message = (
            f"{first!r} is a file, and a list of strings is a list of texts; to read files, give paths: "
            "[pathlib.Path(name) for name in names]"
        )
        raise InputError(message)
    file, rows = _lookalike.spool_items(chain([first], items), directory, settings.get("id_field"), _encode)
    return Input([str(file)], rows)


def _is_path(item: object) -> TypeGuard[PathLike]:
    if isinstance(item, (str, os.PathLike)):
        return True
    raise InputError(f"a path of the type {type(item).__name__} among paths; all must be strings or paths")


def _is_file(text: str) -> bool:
    # Longer than any path, or of several lines: a text.
    if len(text) > 1000 or "\n" in text:
        return False
    try:
        return os.path.isfile(text)
    except ValueError:
        return False


def _stream(source: Any) -> Any:
    """The source as Arrow, if it can be had."""
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return source
    kind = type(source)
    module = kind.__module__.partition(".")[0]
    if module == "polars" and kind.__name__ == "LazyFrame":
        raise InputError("a polars.LazyFrame has no rows yet; use dedup(frame.collect())")
    if module == "datasets" and kind.__name__ == "Dataset":
        return _ReaderOf(source)
    if module in {"duckdb", "_duckdb"} and hasattr(source, "fetch_record_batch"):
        return source.fetch_record_batch()
    if module == "pandas" and kind.__name__ == "DataFrame":
        import pyarrow

        return pyarrow.Table.from_pandas(source, preserve_index=False)
    return None


class _ReaderOf:
    """A dataset of Hugging Face, with its selections and in its order, as a stream of batches."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow

        dataset = self._dataset.with_format("arrow")
        tables = dataset.iter(batch_size=4096)
        schema = dataset.features.arrow_schema
        batches = (batch for table in tables for batch in table.cast(schema).to_batches())
        reader = pyarrow.RecordBatchReader.from_batches(schema, batches)
        return reader.__arrow_c_stream__(requested_schema)


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


_encoder = json.JSONEncoder(ensure_ascii=False, default=_plain)


def _encode(record: Mapping[str, Any]) -> bytes:
    return _encoder.encode(record).encode("utf-8")
