"""The main job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike import _lookalike
from lookalike._errors import LookalikeError
from lookalike._progress import Report, shown
from lookalike._result import Result
from lookalike._scratch import Scratch
from lookalike._sources import PathLike, Source, prepared


def dedup(
    source: Source,
    *,
    output: PathLike | None = None,
    method: str = "minhash",
    threshold: float | None = None,
    keep: str | None = None,
    cluster: str | None = None,
    content: str | None = None,
    exact_only: bool | None = None,
    against: PathLike | None = None,
    prefer: str | Sequence[str] | None = None,
    within: str | None = None,
    site: str | None = None,
    length_ratio: float | None = None,
    min_tokens: int | None = None,
    mask: str | None = None,
    keep_case: bool | None = None,
    language: str | None = None,
    scripts: bool | None = None,
    bucket_limit: int | None = None,
    seeds: PathLike | Sequence[PathLike] | None = None,
    format: str | None = None,
    id_field: str | None = None,
    text_field: str | Sequence[str] | None = None,
    url_field: str | None = None,
    date_field: str | None = None,
    read_as: str | None = None,
    include: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    sample: float | None = None,
    cdxj: PathLike | None = None,
    status: str | None = None,
    types: str | None = None,
    max_page: int | str | None = None,
    strict: bool | None = None,
    removed: bool | None = None,
    annotate: bool | None = None,
    no_kept: bool | None = None,
    kept_format: str | None = None,
    kept_compression: str | None = None,
    split_size: int | str | None = None,
    copy_kept: bool | None = None,
    revisit: bool | None = None,
    jsonl: bool | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    resume: bool | None = None,
    force: bool | None = None,
    replace: bool | None = None,
    progress: bool | Report | None = None,
    **parameters: Any,
) -> Result:
    """Find near-duplicates, and say which documents to keep.

    >>> import lookalike
    >>> story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 5
    >>> pages = [{"id": "a", "text": story}, {"id": "b", "text": story.upper()}, {"id": "c", "text": "Something else"}]
    >>> result = lookalike.dedup(pages)
    >>> result.summary.kept, result.summary.dropped
    (2, 1)
    >>> result.clusters.to_pyarrow().column("kept_id").to_pylist()
    ['a', 'a', 'c']

    Args:
        source: A path (file, directory, glob pattern, URL) or a list of ``pathlib.Path``; a table with the Arrow C
            stream interface (pyarrow, polars, pandas, DuckDB, Hugging Face datasets); or an iterable of texts or dicts.
            A list of strings is a list of texts. Nulls are skipped and counted.
        output: Directory for the result, which stays; without it, the result is temporary and goes with the object that is
            returned.
        method: How near-duplicates are found: minhash, shingle, projection, combined, routed, simhash, bloom or
            spotsigs; also with parameters, as in ``"spotsigs threshold=0.4"``.
        threshold: Similarity, 0..1, from which two documents are near-duplicates. The other methods have parameters of
            their own.
        keep: Which document of a group stays: first, longest, newest, shortest-url, or ``max:FIELD``.
        cluster: star names a verified kept document for every dropped one; components also follows chains.
        content: Which part of an HTML page is compared: story, page, core, main or links.
        exact_only: Find exact copies only.
        against: Drop what another corpus already has: a result, files of pages, or an index.
        prefer: Patterns of files whose pages stay before all others.
        within: Compare only pages of the same language or site.
        site: What a site is: paper (the host without its first label) or registrable (by the public suffix list).
        length_ratio: Compare only documents of similar length: shorter / longer at least this.
        min_tokens: Documents with fewer words match only as exact copies.
        mask: ``"volatile"`` leaves out dates, times, counters and session ids.
        keep_case: Treat upper and lower case as different.
        language: The language of all documents, by its code (``"eng"``); it is detected otherwise.
        scripts: Take text in scripts into account.
        bucket_limit: Buckets with more documents than this are compared by leaders, not in all pairs.
        seeds: Files of examples that seeded matching starts from (spotsigs).
        format: Read every file as this format instead of recognising it.
        id_field, text_field, url_field, date_field: The columns or fields to read. Without ``id_field``, ``id`` is the id,
            or the number of the row; without ``text_field``, the first there is of text, content, html and body.
        read_as: Read every document as text or html, whatever it looks like.
        include, exclude: Patterns of the files that are read, or are not.
        sample: Take only this share of the documents.
        cdxj: Take only the captures that this CDXJ file names.
        status, types: Which responses of web archives are pages.
        max_page: Skip documents larger than this, as in ``"64MiB"``.
        strict: Stop at the first document that cannot be used, instead of skipping and counting it.
        removed, annotate: Write the dropped records, or all records with their groups, to ``output``.
        no_kept: Do not write the kept records; a temporary result never has them.
        kept_format, kept_compression, split_size, copy_kept, revisit, jsonl: How records and tables are written.
        memory: Ceiling on memory, as in ``"4GB"``; half the machine's by default.
        threads: Worker threads; one for each processor by default.
        resume: Go on where a run into the same output was interrupted.
        force: Write into a directory that holds other things.
        replace: Overwrite a result of other inputs or settings.
        progress: True or False to show bars or not, or a function that is called with the stage, what is done, what there
            is to do and the documents so far. By default, bars are shown on a terminal and in notebooks if tqdm is installed.
        **parameters: Parameters of the method, such as ``ngram=3`` or ``radius=4``.

    Raises:
        InvalidSetting: A setting has a value that it cannot have.
        InputError: The source cannot be used.
        KeyboardInterrupt: Ctrl-C was pressed; with ``output``, ``resume=True`` goes on.
    """
    given = {name: value for name, value in locals().items() if name not in _NOT_SETTINGS}
    settings = {name: value for name, value in {**given, **parameters}.items() if value is not None}
    with Scratch() as scratch:
        is_kept = output is not None
        directory = Path(os.fspath(output)) if output is not None else scratch.path / "result"
        if not is_kept:
            settings["no_kept"] = True
        inputs = prepared(source, scratch.path, settings, is_whole=is_kept)
        try:
            with shown(progress) as report:
                _lookalike.dedup(inputs.paths, str(directory), method, settings, report)
        except LookalikeError as error:
            if inputs.rows is not None:
                # Nobody but us knows of the file.
                error.args = (str(error).replace(inputs.paths[0], "the source"),)
            raise
        return Result._made(directory, scratch.keep(), inputs.rows)


_NOT_SETTINGS = {"source", "output", "method", "progress", "parameters"}
