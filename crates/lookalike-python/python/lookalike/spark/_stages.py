"""What a job has done so far, so that another run goes on from there."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike._errors import LookalikeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class StageError(LookalikeError):
    """The output directory holds the work of another job."""


def local_path(path: str) -> Path | None:
    """The path of what the driver can write itself, without a job: files of this machine, or of a file system that is mounted."""
    if path.startswith("file:"):
        return Path("/" + path[len("file:") :].lstrip("/"))
    return None if "://" in path else Path(path)


def write_text(path: Path, text: str) -> None:
    """Writes a file that is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _is_missing(error: Exception) -> bool:
    return "PATH_NOT_FOUND" in str(error) or "UNABLE_TO_INFER_SCHEMA" in str(error)


class Stages:
    """The stages of a job as Parquet below ``output/_stages``.

    A stage is done when ``_stages/_done/NAME`` says so, which is written after all of it. A driver that is killed loses what the
    stage at hand had done, and nothing else.
    """

    def __init__(self, spark: SparkSession, output: str, key: str, *, restart: bool, quiet: bool) -> None:
        self.spark = spark
        self.base = output.rstrip("/") + "/_stages"
        self.key = key
        self.quiet = quiet
        self.restart = restart
        self.times: dict[str, float] = {}
        # What this run has made or found.
        self._tables: dict[str, DataFrame] = {}
        self._values: dict[str, Any] = {}
        known = self._read_done("job")
        if known is not None and known["key"] != key and not restart:
            raise StageError(
                f"{output}: holds the work of another job: other inputs, other settings, files that have changed since, or"
                " another version; choose another output, or say restart to begin anew"
            )
        if known is None or known["key"] != key or restart:
            self.restart = True
            self._write_done("job", {"key": key})

    def _done(self, name: str) -> str:
        return f"{self.base}/_done/{name}"

    def _read_done(self, name: str) -> dict[str, Any] | None:
        from pyspark.errors import AnalysisException

        if (path := local_path(self._done(name))) is not None:
            return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
        try:
            rows = self.spark.read.parquet(self._done(name)).collect()
        except AnalysisException as error:
            if _is_missing(error):
                return None
            raise
        return json.loads(rows[0]["note"]) if rows else None

    def _write_done(self, name: str, note: dict[str, Any]) -> None:
        if (path := local_path(self._done(name))) is not None:
            write_text(path, json.dumps({**note, "key": self.key}))
            return
        rows = self.spark.createDataFrame([(json.dumps({**note, "key": self.key}),)], "note string")
        rows.coalesce(1).write.mode("overwrite").parquet(self._done(name))

    def _is_done(self, name: str) -> dict[str, Any] | None:
        if self.restart:
            return None
        done = self._read_done(name)
        return done if done is not None and done["key"] == self.key else None

    def _say(self, text: str) -> None:
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def table(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """The rows of a stage: those that are there, or what ``make`` returns, written first."""
        if name in self._tables:
            return self._tables[name]
        path = f"{self.base}/{name}"
        if self._is_done(name) is None:
            started = time.monotonic()
            make().write.mode("overwrite").parquet(path)
            self.times[name] = time.monotonic() - started
            self._write_done(name, {})
            self._say(f"{name}: {self.times[name]:.1f} s")
        else:
            self._say(f"{name}: done before")
        self._tables[name] = self.spark.read.parquet(path)
        return self._tables[name]

    def value(self, name: str, make: Callable[[], Any]) -> Any:
        """A value that the driver has, which JSON can hold."""
        if name in self._values:
            return self._values[name]
        done = self._is_done(name)
        if done is not None:
            self._say(f"{name}: done before")
            self._values[name] = done["value"]
            return done["value"]
        started = time.monotonic()
        made = make()
        self.times[name] = time.monotonic() - started
        self._write_done(name, {"value": made})
        self._values[name] = made
        self._say(f"{name}: {self.times[name]:.1f} s")
        return made
