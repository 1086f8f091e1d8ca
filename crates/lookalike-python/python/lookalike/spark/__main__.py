"""The command line: ``python -m lookalike.spark dedup --input PATH… --output DIR``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from lookalike._errors import LookalikeError


def _value(text: str) -> Any:
    """A setting as people write it."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lookalike.spark",
        description="Find near-duplicates on Apache Spark: the result of one machine, row for row.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    dedup = commands.add_parser(
        "dedup",
        help="find near-duplicates, and say which pages to keep",
        description="Finds near-duplicates, and says which pages to keep. A run that was stopped goes on if it is started again.",
        epilog="Every other option is one of `lookalike dedup`, or a parameter of the method: --threshold 0.8, --keep longest.",
    )
    dedup.add_argument(
        "--input", nargs="+", required=True, metavar="PATH", help="files, directories or patterns; every executor must see them"
    )
    dedup.add_argument(
        "--output", required=True, metavar="DIR", help="for the tables and the stages; Spark must be able to write there"
    )
    dedup.add_argument(
        "--method", default="minhash", help="minhash (default), simhash, combined, shingle, projection, routed, spotsigs"
    )
    dedup.add_argument("--against", nargs="+", metavar="PATH", help="files of another corpus, whose pages stay")
    dedup.add_argument("--driver-pairs", type=int, metavar="N", help="up to so many pairs are grouped by the driver in one step")
    transfer = commands.add_parser(
        "transfer",
        help="carry relevance judgments from one crawl to another",
        description="Carries relevance judgments from one crawl to another: DIR/result has the judgments, and both ids with the evidence.",
        epilog="Every other option is one of `lookalike transfer`: --threshold 0.8, --allow-missing.",
    )
    transfer.add_argument("--qrels", required=True, metavar="FILE", help="the judgments, in TREC format")
    transfer.add_argument(
        "--from", nargs="+", required=True, metavar="PATH", dest="source", help="files of the crawl that they are about"
    )
    transfer.add_argument("--to", nargs="+", required=True, metavar="PATH", dest="target", help="files of the other crawl")
    transfer.add_argument(
        "--output", required=True, metavar="DIR", help="for the result and the stages; the driver must be able to write there"
    )
    for command in (dedup, transfer):
        command.add_argument("--master", help="where to run; by default what spark-submit says, or this machine")
        command.add_argument("--restart", action="store_true", help="begin anew, whatever the output directory has")
        command.add_argument("--quiet", action="store_true", help="say nothing about stages")
    return parser


def _settings(words: Sequence[str], parser: argparse.ArgumentParser) -> dict[str, Any]:
    """What is left of the arguments: ``--name value``, ``--name=value`` or ``--flag``."""
    settings: dict[str, Any] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("--"):
            parser.error(f"{word}: options begin with --; files are named with --input")
        name, equals, value = word[2:].partition("=")
        at += 1
        if equals:
            settings[name.replace("-", "_")] = _value(value)
        elif at < len(words) and not words[at].startswith("--"):
            settings[name.replace("-", "_")] = _value(words[at])
            at += 1
        else:
            settings[name.replace("-", "_")] = True
    return settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    parser = _arguments()
    known, rest = parser.parse_known_args(arguments)
    settings = _settings(rest, parser)
    try:
        from lookalike.spark import session
    except ImportError as error:
        print(f"lookalike.spark: {error}; install what it needs: pip install 'lookalike[spark]'", file=sys.stderr)
        return 1
    spark = session(known.master)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        counts = _dedup(spark, known, settings) if known.command == "dedup" else _transfer(spark, known, settings)
    except LookalikeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if type(error).__name__ == "InvalidSetting" else 1
    finally:
        spark.stop()
    print(json.dumps(counts))
    return 3 if counts["skipped"] else 0


def _dedup(spark: Any, known: argparse.Namespace, settings: dict[str, Any]) -> dict[str, Any]:
    from lookalike.spark._dedup import DRIVER_PAIRS, dedup

    result = dedup(
        spark,
        known.input,
        output=known.output,
        method=known.method,
        against=known.against,
        restart=known.restart,
        quiet=known.quiet,
        driver_pairs=DRIVER_PAIRS if known.driver_pairs is None else known.driver_pairs,
        **settings,
    )
    return {name: result.summary[name] for name in ("pages", "kept", "dropped", "pairs", "near_misses", "skipped")}


def _transfer(spark: Any, known: argparse.Namespace, settings: dict[str, Any]) -> dict[str, Any]:
    from lookalike.spark import transfer

    return transfer(
        spark, known.qrels, known.source, known.target, output=known.output, restart=known.restart, quiet=known.quiet, **settings
    )


if __name__ == "__main__":
    sys.exit(main())
