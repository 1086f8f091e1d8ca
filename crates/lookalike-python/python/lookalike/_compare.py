"""Two documents."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from lookalike import _lookalike
from lookalike._errors import InputError
from lookalike._record import Record

Document: TypeAlias = "str | bytes | os.PathLike[str] | Mapping[str, Any]"


class Comparison(Record):
    """What every method says of two documents: ``methods``, ``identical``, ``difference``, ``page_similarity``, …"""

    html: str

    @classmethod
    def from_engine(cls, found: tuple[str, str]) -> Comparison:
        """A comparison as the engine gives it: JSON, and a page."""
        comparison = cls(Record.from_json(found[0]))
        object.__setattr__(comparison, "html", found[1])
        return comparison

    def __repr__(self) -> str:
        near = [decision.method for decision in self.methods if decision.near_duplicate]
        agree = ", ".join(near) if near else "no method"
        return f"<lookalike.Comparison: similarity {self.page_similarity:.4f}; near-duplicates by {agree}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(decision.method)}</td><td>{'yes' if decision.near_duplicate else 'no'}</td>"
            f"<td>{decision.similarity:.4f}</td><td>{decision.score:g} {html.escape(decision.unit)}</td>"
            f"<td>{html.escape(decision.needed)}</td></tr>"
            for decision in self.methods
        )
        heads = "<tr><th>method</th><th>near-duplicate</th><th>similarity</th><th>score</th><th>needed</th></tr>"
        return f"<p>{html.escape(self.difference)}</p><table>{heads}{rows}</table>"


def compare(a: Document, b: Document, **settings: Any) -> Comparison:
    """What every method says of two documents, and where they differ.

    >>> import lookalike
    >>> story = "The ferry had left the harbour before the storm reached the town, and nobody was hurt. " * 5
    >>> found = lookalike.compare(story, {"html": f"<h1>News</h1><p>{story}"})
    >>> found.identical, found.methods[0].method, found.methods[0].near_duplicate
    (False, 'minhash', True)

    Args:
        a, b: Texts or markup; bytes, whose charset is detected; the path of a file with one document; or dicts with
            ``text`` or ``html``, and perhaps ``url`` and ``title``.
        **settings: What is compared, as in :func:`lookalike.dedup`: ``content``, ``mask``, ``keep_case``, ``site``, …

    Returns:
        A :class:`Comparison`; its attribute ``html`` is a page with the two side by side.
    """
    return Comparison.from_engine(_lookalike.compare(_page(a), _page(b), settings))


def _page(document: Document) -> dict[str, Any]:
    page: dict[str, Any] = {"text": None, "html": None, "bytes": None, "url": None, "title": None}
    if isinstance(document, str):
        page["text"] = document
    elif isinstance(document, bytes):
        page["bytes"] = document
    elif isinstance(document, os.PathLike):
        with open(document, "rb") as file:
            page["bytes"] = file.read()
    elif isinstance(document, Mapping):
        if not {"text", "html"} & set(document):
            raise InputError(f"a document has a 'text' or 'html', and this one has {', '.join(map(str, document))}")
        page.update({name: document[name] for name in page if name in document})
    else:
        message = f"a document of the type {type(document).__name__}; it must be str, bytes, a path or a dict"
        raise InputError(message)
    return page
