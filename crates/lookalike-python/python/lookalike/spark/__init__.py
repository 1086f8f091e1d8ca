"""The main job on Apache Spark: the same result as on one machine, for more than one machine can hold.

``python -m lookalike.spark dedup --input PATH… --output DIR`` from a shell, or, in a program that has a Spark session:

    >>> from lookalike import spark as lookalike_spark                                       # doctest: +SKIP
    >>> spark = lookalike_spark.session()                                                    # doctest: +SKIP
    >>> result = lookalike_spark.dedup(spark, "s3://bucket/crawl/*.warc.gz", output="s3a://bucket/out")  # doctest: +SKIP
    >>> result.clusters.where("kept").count()                                                # doctest: +SKIP

Needs PySpark 4, pyarrow and pandas below 3: ``pip install "lookalike[spark]"``.
"""

from __future__ import annotations

from lookalike.spark._dedup import SparkResult, dedup
from lookalike.spark._hamming import hamming_join
from lookalike.spark._session import package_archive, session
from lookalike.spark._stages import StageError
from lookalike.spark._transfer import transfer

__all__ = ["SparkResult", "StageError", "dedup", "hamming_join", "package_archive", "session", "transfer"]
