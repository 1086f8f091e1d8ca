"""The client that waits."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Iterable, Iterator, TypeVar

import httpx

from lookalike.client import _calls
from lookalike.client._calls import BATCH_BYTES, BATCH_PAGES, DEFAULT_URL, BatchAnswers, Batches, Call, Settings
from lookalike.client._types import Answer, Collection, Page, PageProblem, Store, StoredPage

T = TypeVar("T")


class Client:
    """Asks a running ``lookalike serve``: have I seen this page?

    ::

        with Client("http://127.0.0.1:8700") as client:
            answer = client.check({"url": url, "html": html}, store="if_new")
            if not answer.seen:
                follow_links(html)

    ``token`` is sent with every request, ``collection`` names another collection than ``default``. A request that the service is too
    busy for (429, 503) is sent again up to ``retries`` times, after the time that the service asks for, or ``backoff`` seconds
    and twice as many each time; so is one that never arrived, or that can be repeated without harm. ``http`` is an ``httpx.Client``
    of your own, with certificates, proxies or limits; it is not closed. A client may be shared by threads.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        collection: str | None = None,
        timeout: float = 60.0,
        retries: int = 5,
        backoff: float = 0.25,
        longest_wait: float = 30.0,
        http: httpx.Client | None = None,
    ) -> None:
        self._settings = Settings(url.rstrip("/"), token, collection, retries, backoff, longest_wait)
        self._http = http or httpx.Client(timeout=timeout)
        self._owns = http is None

    def collection(self, name: str) -> Client:
        """The same service, another collection; it shares the connections of this client."""
        other = Client.__new__(Client)
        other._settings, other._http, other._owns = replace(self._settings, collection=name), self._http, False
        return other

    def close(self) -> None:
        """Closes the connections."""
        if self._owns:
            self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def check(self, page: Page, *, store: Store = "never", explain: bool = False) -> Answer:
        """Looks up a page, and stores it: never, if nothing like it is stored, or always."""
        return self._run(_calls.check(self._settings, page, store, explain))

    def check_many(
        self, pages: Iterable[Page], *, store: Store = "never", explain: bool = False, batch_pages: int = BATCH_PAGES
    ) -> Iterator[Answer | PageProblem]:
        """The answers to any number of pages, in their order, while they are read; one batch is held in memory.

        A page that the service cannot use is answered with a :class:`PageProblem`.
        """
        first = 0
        for lines in Batches(batch_pages, BATCH_BYTES).of(pages):
            answers = BatchAnswers(first, len(lines))
            with self._send(_calls.batch(self._settings, lines, store, explain)) as response:
                try:
                    for line in response.iter_lines():
                        yield answers.next(line)
                except httpx.TransportError as error:
                    raise _calls.no_answer(error, self._settings) from error
            answers.check_complete()
            first += len(lines)

    def get(self, id: str) -> StoredPage | None:
        """What is stored about a page; nothing if it is not."""
        return self._run(_calls.get(self._settings, id))

    def delete(self, id: str) -> bool:
        """Removes a page; says whether it was there."""
        return self._run(_calls.delete(self._settings, id))

    def pages(self, *, prefix: str | None = None) -> Iterator[StoredPage]:
        """All stored pages in the order of their ids, or those whose ids begin with ``prefix``."""
        after: str | None = None
        while True:
            found, after = self._run(_calls.pages(self._settings, prefix, after))
            for page in found:
                yield page
            if after is None:
                return

    def delete_pages(self, *, prefix: str | None = None, url: str | None = None) -> int:
        """Removes the pages whose ids begin with ``prefix``, or whose URLs match ``url`` (``http://a.org/*``); says how many."""
        removed, complete = 0, False
        while not complete:
            some, complete = self._run(_calls.delete_pages(self._settings, prefix, url))
            removed += some
        return removed

    def compare(self, left: Page, right: Page) -> dict[str, Any]:
        """What every method says about two pages."""
        return self._run(_calls.compare(self._settings, left, right))

    def stats(self) -> dict[str, Any]:
        """Statistics of the collection."""
        return self._run(_calls.stats(self._settings))

    def collections(self) -> list[Collection]:
        """All collections, by name."""
        found, after = self._run(_calls.collections(self._settings, None))
        while after is not None:
            more, after = self._run(_calls.collections(self._settings, after))
            found += more
        return found

    def create_collection(self, name: str, **config: Any) -> Collection:
        """Creates a collection (``ngram=3``, ``threshold=0.7``, …); does nothing if it exists with these settings."""
        return self._run(_calls.create_collection(self._settings, name, config))

    def change_collection(self, name: str, **config: Any) -> Collection:
        """Gives a collection other settings (none for a default); it is built anew in the background, ``rebuild`` says how far that is."""
        return self._run(_calls.change_collection(self._settings, name, config))

    def delete_collection(self, name: str) -> bool:
        """Removes a collection with all its pages; says whether it was there."""
        return self._run(_calls.delete_collection(self._settings, name))

    def _run(self, call: Call[T]) -> T:
        with self._send(call) as response:
            try:
                response.read()
            except httpx.TransportError as error:
                raise _calls.no_answer(error, self._settings) from error
            return call.finish(response)

    @contextmanager
    def _send(self, call: Call[Any]) -> Iterator[httpx.Response]:
        """Sends a request until it is answered; a body is left to be read only if the request succeeded."""
        attempt = 0
        while True:
            wanted: float | None = None
            try:
                response = self._http.send(call.request(self._http, self._settings), stream=True)
            except httpx.TransportError as error:
                if attempt == self._settings.retries or not _calls.may_repeat(error, call.repeatable):
                    raise _calls.no_answer(error, self._settings) from error
            else:
                with closing(response):
                    if response.is_success:
                        yield response
                        return
                    try:
                        response.read()
                    except httpx.TransportError as error:
                        raise _calls.no_answer(error, self._settings) from error
                    if attempt == self._settings.retries or not _calls.is_busy(response):
                        call.finish(response)  # raises, unless the page is simply not there
                        yield response
                        return
                    wanted = _calls.retry_after(response)
            time.sleep(self._settings.wait(attempt, wanted))
            attempt += 1
