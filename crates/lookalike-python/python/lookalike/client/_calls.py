"""Calls as data: what is sent, how the answer is read, and when it is worth another try. Nothing here touches the network."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Generic, Iterable, Iterator, Mapping, TypeVar
from urllib.parse import quote

import httpx

from lookalike.client._errors import NoAnswer, ServiceError, error_of
from lookalike.client._types import Answer, Collection, Page, PageProblem, Store, StoredPage

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8700"
#: Statuses after which the same request may succeed a little later. It was not acted upon.
_BUSY = frozenset({429, 503})
#: Problems with one of those statuses that waiting does not end.
_LASTING = frozenset({"urn:lookalike:read-only"})
#: What a batch has at most; the rest goes into the next.
BATCH_PAGES = 500
BATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class Settings:
    """What all calls of a client share."""

    url: str
    token: str | None
    collection: str | None
    retries: int
    backoff: float
    longest_wait: float

    def headers(self) -> dict[str, str]:
        # The second one is a sign that no web page of another site sent this.
        headers = {"User-Agent": "lookalike-python", "X-Lookalike": "1"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def path(self, rest: str) -> str:
        """A path within the collection of the client."""
        if self.collection is None:
            return f"/v1{rest}"
        return f"/v1/collections/{quote(self.collection, safe='')}{rest}"

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds before the next attempt: twice as many each time, spread, and no fewer than the service wants."""
        grown = self.backoff * 2.0**attempt * random.uniform(0.5, 1.0)
        return min(max(grown, retry_after or 0.0), self.longest_wait)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request and how its answer is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    #: Whether doing it twice is the same as doing it once, so that it can be repeated when an answer was lost.
    repeatable: bool = False
    #: Read with the answer of a page that is not there.
    missing: Callable[[], T] | None = None
    missing_type: str = "urn:lookalike:not-found"

    def request(self, http: httpx.Client | httpx.AsyncClient, settings: Settings) -> httpx.Request:
        headers = settings.headers()
        if self.body is not None:
            headers["Content-Type"] = self.content_type
        url = settings.url + self.path
        return http.build_request(self.method, url, params=dict(self.params) or None, content=self.body, headers=headers)

    def finish(self, response: httpx.Response) -> T:
        """What a response that was read says."""
        if response.status_code == 404 and self.missing is not None:
            error = problem(response)
            if error.type == self.missing_type:
                return self.missing()
            raise error
        if not response.is_success:
            raise problem(response)
        if response.status_code == 204 or not response.content:
            return self.read(None)
        return self.read(response.json())


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the service wants to be left alone: a number, or until a date."""
    value = response.headers.get("Retry-After")
    if value is None:
        return None
    try:
        return max(float(value), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None


def problem(response: httpx.Response) -> ServiceError:
    return error_of(response.status_code, response.content, response.headers, retry_after(response))


def is_busy(response: httpx.Response) -> bool:
    """Whether a response whose body was read says that a later try may succeed."""
    return response.status_code in _BUSY and problem(response).type not in _LASTING


def may_repeat(error: httpx.TransportError, repeatable: bool) -> bool:
    """Whether a request can be sent again after this: it never arrived, or that does not matter."""
    return repeatable or isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout))


def no_answer(error: httpx.TransportError, settings: Settings) -> NoAnswer:
    return NoAnswer(f"no answer from {settings.url}: {error or type(error).__name__}")


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _lookup(store: Store, explain: bool) -> dict[str, str]:
    return {"store": store, **({"explain": "true"} if explain else {})}


def check(settings: Settings, page: Page, store: Store, explain: bool) -> Call[Answer]:
    return Call(
        "POST",
        settings.path("/pages"),
        Answer.from_json,
        params=_lookup(store, explain),
        body=_dump(page),
        repeatable=store == "never",
    )


def get(settings: Settings, id: str) -> Call[StoredPage | None]:
    return Call("GET", settings.path("/pages"), StoredPage.from_json, params={"id": id}, repeatable=True, missing=lambda: None)


def delete(settings: Settings, id: str) -> Call[bool]:
    # A repeated one could not say whether the page was there.
    return Call("DELETE", settings.path("/pages"), lambda _: True, params={"id": id}, missing=lambda: False)


def pages(settings: Settings, prefix: str | None, after: str | None) -> Call[tuple[list[StoredPage], str | None]]:
    """A part of the pages by id, and where the next part begins."""

    def read(raw: Any) -> tuple[list[StoredPage], str | None]:
        return [StoredPage.from_json(page) for page in raw["pages"]], raw["next"]

    params = {"limit": "1000"}
    if prefix is not None:
        params["prefix"] = prefix
    if after is not None:
        params["after"] = after
    return Call("GET", settings.path("/pages"), read, params=params, repeatable=True)


def delete_pages(settings: Settings, prefix: str | None, url: str | None) -> Call[tuple[int, bool]]:
    """Removes pages; says how many, and whether that was all."""
    if (prefix is None) == (url is None):
        raise ValueError("give either prefix or url")
    wanted = {"prefix": prefix} if prefix is not None else {"url": url or ""}

    def read(raw: Any) -> tuple[int, bool]:
        return raw["deleted"], raw["complete"]

    return Call("DELETE", settings.path("/pages"), read, params={**wanted, "confirm": "true"}, repeatable=True)


def delete_collection(settings: Settings, name: str) -> Call[bool]:
    path = f"/v1/collections/{quote(name, safe='')}"
    missing_type = "urn:lookalike:no-such-collection"
    return Call("DELETE", path, lambda _: True, params={"confirm": "true"}, missing=lambda: False, missing_type=missing_type)


def compare(settings: Settings, left: Page, right: Page) -> Call[dict[str, Any]]:
    body = _dump({"left": left, "right": right})
    return Call("POST", settings.path("/compare"), dict, body=body, repeatable=True)


def stats(settings: Settings) -> Call[dict[str, Any]]:
    return Call("GET", settings.path("/stats"), dict, repeatable=True)


def collections(settings: Settings, after: str | None) -> Call[tuple[list[Collection], str | None]]:
    def read(raw: Any) -> tuple[list[Collection], str | None]:
        return [Collection.from_json(each) for each in raw["collections"]], raw.get("next")

    return Call("GET", "/v1/collections", read, params={} if after is None else {"after": after}, repeatable=True)


def create_collection(settings: Settings, name: str, config: Mapping[str, Any]) -> Call[Collection]:
    path = f"/v1/collections/{quote(name, safe='')}"
    return Call("PUT", path, Collection.from_json, body=_dump(dict(config)), repeatable=True)


def change_collection(settings: Settings, name: str, config: Mapping[str, Any]) -> Call[Collection]:
    path = f"/v1/collections/{quote(name, safe='')}"
    return Call("PATCH", path, Collection.from_json, body=_dump(dict(config)))


def batch(settings: Settings, lines: list[bytes], store: Store, explain: bool) -> Call[None]:
    """A call whose answer is read line by line."""
    return Call(
        "POST",
        settings.path("/pages/batch"),
        lambda _: None,
        params=_lookup(store, explain),
        body=b"".join(lines),
        content_type="application/x-ndjson",
        repeatable=store == "never",
    )


class Batches:
    """Cuts pages into batches that are small enough to be held in memory."""

    def __init__(self, most_pages: int, most_bytes: int) -> None:
        if most_pages < 1:
            raise ValueError("batch_pages must be at least 1")
        self.most_pages, self.most_bytes = most_pages, most_bytes
        self.lines: list[bytes] = []
        self.bytes = 0

    def add(self, page: Page) -> list[bytes] | None:
        """Takes a page; gives the batch that is full without it, if there is one."""
        line = _dump(page) + b"\n"
        is_full = self.lines and (len(self.lines) == self.most_pages or self.bytes + len(line) > self.most_bytes)
        full = self.rest() if is_full else None
        self.lines.append(line)
        self.bytes += len(line)
        return full

    def rest(self) -> list[bytes]:
        lines, self.lines, self.bytes = self.lines, [], 0
        return lines

    def of(self, pages: Iterable[Page]) -> Iterator[list[bytes]]:
        for page in pages:
            if full := self.add(page):
                yield full
        if self.lines:
            yield self.rest()


class BatchAnswers:
    """Reads the lines of a batch's answer."""

    def __init__(self, first: int, count: int) -> None:
        self.first, self.count, self.read = first, count, 0

    def next(self, line: str) -> Answer | PageProblem:
        raw = json.loads(line)
        index = self.first + self.read
        self.read += 1
        if "verdict" in raw:
            return Answer.from_json(raw)
        return PageProblem(index, raw["status"], raw["type"], raw["title"], raw["detail"])

    def check_complete(self) -> None:
        if self.read != self.count:
            reason = f"the answers to a batch broke off after {self.read} of {self.count}; whether the others are stored is not known"
            raise NoAnswer(reason)
