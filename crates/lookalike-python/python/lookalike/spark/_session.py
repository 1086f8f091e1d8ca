"""A Spark session whose executors have the engine."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import lookalike
from lookalike.spark._parts import PACKAGE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    # One machine has few cores, and every task costs.
    "spark.sql.shuffle.partitions": "4",
}


def package_archive(directory: str | Path) -> Path:
    """Writes the installed package as an archive for ``spark.archives``.

    Native code cannot be loaded from a wheel that is given as ``--py-files``: it has to be unpacked.
    """
    root = Path(lookalike.__file__).parent
    archive = Path(directory) / "lookalike-package.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                file.write(path, Path("lookalike") / path.relative_to(root))
    return archive


def session(master: str | None = None, *, name: str = "lookalike", **settings: str) -> SparkSession:
    """A Spark session whose executors have the package, whether or not it is installed there.

    Args:
        master: Where to run, as in ``"yarn"``; without it, what ``spark-submit`` says, or this machine. On this machine nothing
            listens on anything but 127.0.0.1, and there is no web page.
        name: What the application is called.
        **settings: Settings of Spark, with ``_`` for ``.``: ``spark_executor_memory="8g"``.
    """
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    conf = SparkConf()
    if master is not None:
        conf.setMaster(master)
    elif not conf.contains("spark.master"):
        conf.setMaster("local[*]")
    where = conf.get("spark.master", "")
    if where.startswith(("local", "spark://127.0.0.1", "spark://localhost")):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # The Python that runs this, not the first one in the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        for key, value in _LOOPBACK.items():
            conf.setIfMissing(key, value)
    conf.setIfMissing("spark.app.name", name)
    conf.setIfMissing("spark.sql.execution.arrow.maxRecordsPerBatch", "4096")
    # Rows of the parts are wide: fewer at a time.
    conf.setIfMissing("spark.sql.parquet.compression.codec", "zstd")
    archive = package_archive(tempfile.mkdtemp(prefix="lookalike-"))
    archives = [part for part in [conf.get("spark.archives", ""), f"{archive}#{PACKAGE}"] if part]
    conf.set("spark.archives", ",".join(archives))
    for key, value in settings.items():
        conf.set(key.replace("_", "."), value)
    return SparkSession.builder.config(conf=conf).getOrCreate()
