"""What is sent to the service, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, TypedDict

Store = Literal["never", "if_new", "always"]
Verdict = Literal["new", "near", "exact"]
Length = Literal["enough", "short", "empty"]


class Page(TypedDict, total=False):
    """A page: exactly one of ``html`` and ``text``. Without an ``id``, its ``url`` is its id."""

    id: str
    url: str
    title: str
    html: str
    text: str
    #: A JSON object that is stored with it.
    metadata: Mapping[str, Any]
    #: Seconds for which it is stored.
    ttl: int


@dataclass(frozen=True)
class Match:
    """A stored page that a page is like."""

    id: str
    #: Differing bits of the fingerprints.
    distance: int | None
    #: Share of runs of five words in common.
    similarity: float | None
    #: Everything that the service said.
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Match:
        return cls(raw["id"], raw.get("distance"), raw.get("similarity"), raw)


@dataclass(frozen=True)
class Answer:
    """What the service knows about a page."""

    #: Its id, if it was given one or is stored.
    id: str | None
    verdict: Verdict
    #: The stored pages it is like, at most ten, most similar first.
    of: tuple[Match, ...]
    #: Whether this call stored it.
    stored: bool
    #: Whether it replaced a page with the same id.
    replaced: bool
    #: Whether its links are worth following.
    follow_links: bool
    length: Length
    #: The reason for the verdict, with ``explain=True``.
    explanation: Mapping[str, Any] | None
    #: Everything that the service said.
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def seen(self) -> bool:
        """Whether a page like it is stored under another id."""
        return any(match.id != self.id for match in self.of)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Answer:
        return cls(
            id=raw.get("id"),
            verdict=raw["verdict"],
            of=tuple(Match.of(match) for match in raw["of"]),
            stored=raw["stored"],
            replaced=raw.get("replaced", False),
            follow_links=raw.get("crawl", {}).get("follow_links", raw["verdict"] == "new"),
            length=raw.get("length", "enough"),
            explanation=raw.get("explanation"),
            raw=raw,
        )


@dataclass(frozen=True)
class PageProblem:
    """What is wrong with one page of many; the others are not affected."""

    #: Its place among all pages that were given, from 0.
    index: int
    status: int
    type: str
    title: str
    detail: str


@dataclass(frozen=True)
class StoredPage:
    """What is stored about a page."""

    id: str
    url: str | None
    title: str | None
    #: 16 hex digits; none if the page is empty.
    fingerprint: str | None
    tokens: int
    #: In seconds since 1970.
    stored_at: int
    #: In seconds since 1970; none if it stays.
    expires_at: int | None
    #: What was given with it.
    metadata: Mapping[str, Any] | None
    #: Everything that the service said.
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> StoredPage:
        return cls(
            id=raw["id"],
            url=raw.get("url"),
            title=raw.get("title"),
            fingerprint=raw.get("fingerprint"),
            tokens=raw["tokens"],
            stored_at=raw["stored_at"],
            expires_at=raw.get("expires_at"),
            metadata=raw.get("metadata"),
            raw=raw,
        )


@dataclass(frozen=True)
class Collection:
    """A collection of pages."""

    name: str
    #: How its pages are read and compared; none if it holds fingerprints that were made elsewhere.
    config: Mapping[str, Any] | None
    config_hash: str
    #: Rows; deleted ones count until they are merged away.
    rows: int
    #: How far it is with other settings (``config``, ``copied``, ``failed``); none if it has all that was asked for.
    rebuild: Mapping[str, Any] | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Collection:
        return cls(raw["name"], raw.get("config"), raw["config_hash"], raw["rows"], raw.get("rebuild"))
