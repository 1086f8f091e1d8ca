#!/usr/bin/env python3
"""Main-content extractors as a first step of near-duplicate detection.

Extracts the text of every page of labelled sets with several extractors, finds all
pairs of pages whose word 5-gram sets have a Jaccard coefficient of 0.3 or more
(exactly, no sketches), and prints precision, recall and F1 as Markdown tables.

    pip install --no-deps -r requirements.txt
    python3 extractors.py --cache CACHE --set framed-docs-dev DIR --set same-core-dev DIR

DIR is the folder that holds the label file of a set (for llvm-docs-dev: the folder of
the versions). Seconds are CPU seconds of one core: `extract` is read from the cache if
the text is, `join` is the time for 5-grams and pairs.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import trafilatura
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding
from resiliparse.parse.html import HTMLTree
from scipy.sparse import csr_array, triu

THRESHOLDS = (0.7, 0.5, 0.3)
LOWEST = min(THRESHOLDS)
GRAM = 5

Pair = tuple[str, str]
Pairs = dict[Pair, float]

# Han, Hiragana, Katakana and Thai characters are words of their own.
SINGLE = (
    "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"
)
WORD = re.compile(f"[{SINGLE}]|[^\\W_{SINGLE}]+")


# Extractors


def whole_page(html: str) -> str:
    """The visible text of the whole page."""
    return extract_plain_text(html)


def resiliparse_main(html: str) -> str:
    """Resiliparse's main content."""
    return extract_plain_text(html, main_content=True)


def trafilatura_default(html: str) -> str:
    """Trafilatura with its default settings."""
    return trafilatura.extract(html) or ""


def trafilatura_recall(html: str) -> str:
    """Trafilatura, in doubt for more text."""
    return trafilatura.extract(html, favor_recall=True) or ""


def sphinx_body(html: str) -> str:
    """The text of `div.body`, or else of `body`: no extractor, but a reference."""
    tree = HTMLTree.parse(html)
    node = tree.document.query_selector("div.body") or tree.body
    return extract_plain_text(node.html) if node else ""


EXTRACTORS: dict[str, Callable[[str], str]] = {
    "none": whole_page,
    "resiliparse": resiliparse_main,
    "trafilatura": trafilatura_default,
    "trafilatura-recall": trafilatura_recall,
    "body": sphinx_body,
}
PEERS = [name for name in EXTRACTORS if name != "body"]


@dataclass
class Texts:
    """The texts of a set's pages, and what it took to extract them."""

    by_page: dict[str, str]
    seconds: float
    failed: int

    def empty(self) -> int:
        """How many pages have no words."""
        return sum(1 for text in self.by_page.values() if not WORD.search(text))


def extract_page(root: Path, extractor: str, page: str) -> dict[str, object]:
    """One cache record; an extractor's exception counts as an empty text."""
    data = (root / page).read_bytes()
    html = bytes_to_str(data, detect_encoding(data, from_html_meta=True))
    error = None
    start = time.process_time()
    try:
        text = EXTRACTORS[extractor](html)
    except Exception as exception:  # noqa: BLE001 - a result, not an end
        text, error = "", repr(exception)
    seconds = time.process_time() - start
    return {"page": page, "seconds": round(seconds, 6), "error": error, "text": text}


def extract_set(
    name: str, root: Path, pages: list[str], extractor: str, cache: Path, jobs: int
) -> Texts:
    """The texts of all pages, from the cache file of this set, extractor and version."""
    package = "trafilatura" if extractor.startswith("trafilatura") else "resiliparse"
    path = cache / f"{name}.{extractor}.{package}-{version(package)}.jsonl"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial_path = path.with_suffix(".partial")
        with multiprocessing.Pool(jobs) as pool, partial_path.open("w") as out:
            work = partial(extract_page, root, extractor)
            for record in pool.imap_unordered(work, pages, chunksize=8):
                out.write(json.dumps(record) + "\n")
        partial_path.rename(path)
    with path.open() as lines:
        records = {record["page"]: record for record in map(json.loads, lines)}
    if records.keys() != set(pages):
        sys.exit(f"{path} is of other pages: remove it")
    return Texts(
        by_page={page: records[page]["text"] for page in pages},
        seconds=sum(record["seconds"] for record in records.values()),
        failed=sum(record["error"] is not None for record in records.values()),
    )


# Pairs


def grams(text: str) -> set[str]:
    """Word 5-grams; one shorter gram for a text of one to four words."""
    words = WORD.findall(text.lower())
    if len(words) <= GRAM:
        return {" ".join(words)} if words else set()
    return {" ".join(words[i : i + GRAM]) for i in range(len(words) - GRAM + 1)}


def jaccard(left: set[str], right: set[str]) -> float:
    """Jaccard coefficient; 0 if both sets are empty."""
    both = len(left & right)
    return both / (len(left) + len(right) - both) if both else 0.0


def similar_pairs(texts: dict[str, str]) -> Pairs:
    """All pairs (in path order) with a Jaccard coefficient of at least `LOWEST`."""
    pages = sorted(texts)
    numbers: dict[str, int] = {}
    columns: list[int] = []
    starts = [0]
    for page in pages:
        columns += [numbers.setdefault(gram, len(numbers)) for gram in grams(texts[page])]
        starts.append(len(columns))
    if not columns:
        return {}
    ones = np.ones(len(columns), dtype=np.int32)
    matrix = csr_array((ones, columns, starts), shape=(len(pages), len(numbers)))
    both = triu(matrix @ matrix.T, k=1).tocoo()
    sizes = np.diff(starts)
    values = both.data / (sizes[both.row] + sizes[both.col] - both.data)
    found = values >= LOWEST
    triples = zip(both.row[found], both.col[found], values[found], strict=True)
    return {(pages[i], pages[j]): float(value) for i, j, value in triples}


# Labels


@dataclass
class Labelled:
    """A set: its pages, and either clusters or gold similarities of pairs."""

    name: str
    root: Path
    pages: list[str]
    clusters: dict[str, str] = field(default_factory=dict)
    gold: Pairs = field(default_factory=dict)


def rows(path: Path, columns: list[str] | None = None) -> list[dict[str, str]]:
    """Rows of a TSV file; its first line is a header unless columns are given."""
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines, columns, delimiter="\t", quoting=csv.QUOTE_NONE))


def load(name: str, root: Path) -> Labelled:
    """Reads the labels of a set and lists its HTML pages."""
    if name in ("framed-docs-dev", "same-core-dev"):
        home = root / "pages"
    else:
        home = root
    pages = sorted(path.relative_to(home).as_posix() for path in home.rglob("*.html"))
    labelled = Labelled(name, home, pages)
    match name:
        case "framed-docs-dev":
            for row in rows(root / "gold.tsv", ["left", "right", "value"]):
                left, right = sorted((row["left"], row["right"]))
                labelled.gold[left, right] = float(row["value"])
        case "same-core-dev":
            table = rows(root / "clusters.tsv")
            labelled.clusters = {row["page"]: row["cluster"] for row in table}
        case "install-guide-dev":
            table = rows(root / "clusters-dev.tsv")
            labelled.clusters = {row["path"]: row["cluster"] for row in table}
        case "llvm-docs-dev":
            for page in pages:
                folder, _, path = page.partition("/")
                labelled.clusters[page] = f"{folder.rpartition('-')[0]}/{path}"
        case _:
            sys.exit(f"unknown set: {name}")
    named = labelled.clusters.keys() | {page for pair in labelled.gold for page in pair}
    if not pages or not named <= set(pages):
        sys.exit(f"{root}: pages are missing")
    return labelled


# Measures


def share(part: int, whole: int) -> float | None:
    """part / whole, None if there is nothing to have a share of."""
    return part / whole if whole else None


def f1(precision: float | None, recall: float | None) -> float | None:
    """Harmonic mean; reporting nothing is an F1 of 0."""
    if recall is None:
        return None
    total = (precision or 0.0) + recall
    return 2 * (precision or 0.0) * recall / total if total else 0.0


def quality(labelled: Labelled, pairs: Pairs) -> tuple[float | None, float | None]:
    """Precision and recall of the reported pairs."""
    gold, clusters = labelled.gold, labelled.clusters
    if gold:
        right = sum(gold.get(pair, 0.0) >= 0.5 for pair in pairs)
        wanted = [pair for pair, value in gold.items() if value >= 0.7]
        found = sum(pair in pairs for pair in wanted)
        return share(right, len(pairs)), share(found, len(wanted))
    judged = [(a, b) for a, b in pairs if a in clusters and b in clusters]
    right = sum(clusters[a] == clusters[b] for a, b in judged)
    wanted_pairs = sum(n * (n - 1) // 2 for n in Counter(clusters.values()).values())
    return share(right, len(judged)), share(right, wanted_pairs)


def star_drops(pages: Iterable[str], pairs: Pairs) -> list[Pair]:
    """Greedy star clustering: (kept, dropped) for each page that is dropped.

    In path order, a page that matches kept pages is dropped for the most similar
    of them (the first of equals); any other page is kept.
    """
    earlier: dict[str, list[tuple[float, str]]] = {}
    for (left, right), value in pairs.items():
        earlier.setdefault(right, []).append((-value, left))
    kept: set[str] = set()
    drops: list[Pair] = []
    for page in sorted(pages):
        matches = [match for match in earlier.get(page, []) if match[1] in kept]
        if matches:
            drops.append((min(matches)[1], page))
        else:
            kept.add(page)
    return drops


# Output


def show(cell: object) -> str:
    """A table cell."""
    if cell is None:
        return "–"
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def table(title: str, header: list[str], lines: list[list[object]]) -> str:
    """A Markdown table under a title, nothing if it has no lines."""
    if not lines:
        return ""
    out = [header, ["---"] * len(header), *([show(cell) for cell in line] for line in lines)]
    return f"{title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in out) + "\n"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", nargs=2, action="append", required=True,
                        metavar=("NAME", "DIR"), help="a labelled set; may be repeated")
    parser.add_argument("--cache", type=Path, required=True, help="folder for extracted texts")
    parser.add_argument("--extractor", action="append", choices=PEERS, help="default: all")
    parser.add_argument("--jobs", type=int, default=2, help="processes that extract")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)

    scores: list[list[object]] = []
    stars: list[list[object]] = []
    frames: list[list[object]] = []
    for name, directory in options.set:
        labelled = load(name, Path(directory))
        get = partial(extract_set, name, labelled.root, labelled.pages,
                      cache=options.cache, jobs=options.jobs)
        bodies: dict[str, set[str]] = {}
        if name == "llvm-docs-dev":
            bodies = {page: grams(text) for page, text in get("body").by_page.items()}
        for extractor in options.extractor or PEERS:
            texts = get(extractor)
            start = time.process_time()
            found = similar_pairs(texts.by_page)
            join = time.process_time() - start
            print(f"{name} {extractor}: {len(found)} pairs, {texts.empty()} pages empty, "
                  f"{texts.failed} failed", file=sys.stderr, flush=True)
            for threshold in THRESHOLDS:
                pairs = {pair: value for pair, value in found.items() if value >= threshold}
                precision, recall = quality(labelled, pairs)
                first: list[object] = [name, extractor, f"{threshold}"]
                scores.append([*first, len(pairs), precision, recall, f1(precision, recall),
                               texts.empty(), f"{texts.seconds:.1f}", f"{join:.1f}"])
                if labelled.gold:
                    drops = star_drops(labelled.pages, pairs)
                    wrong = sum(labelled.gold.get(drop, 0.0) < 0.5 for drop in drops)
                    stars.append([*first, len(drops), wrong, share(wrong, len(drops))])
                if bodies:
                    inside = [(a, b) for a, b in pairs if a.split("/")[0] == b.split("/")[0]]
                    wrong = sum(jaccard(bodies[a], bodies[b]) < 0.5 for a, b in inside)
                    frames.append([*first, len(inside), wrong, share(wrong, len(inside))])

    print(f"resiliparse {version('resiliparse')}, trafilatura {version('trafilatura')}\n")
    common = ["set", "extractor", "threshold"]
    print(table("Pairs", [*common, "pairs", "precision", "recall", "F1", "empty pages",
                          "extract s", "join s"], scores))
    print(table("Pages dropped by greedy star clustering; wrong: gold < 0.5 to the page "
                "it was dropped for", [*common, "dropped", "wrong", "share wrong"], stars))
    print(table("Reported pairs within one version; wrong: Jaccard of the bodies < 0.5",
                [*common, "pairs", "wrong", "share wrong"], frames))


if __name__ == "__main__":
    main()
