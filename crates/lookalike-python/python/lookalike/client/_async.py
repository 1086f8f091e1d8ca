"""The client that does not block: the same calls as :class:`lookalike.client.Client`, awaited."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, AsyncIterable, AsyncIterator, Iterable, TypeVar

import httpx

from lookalike.client import _calls
from lookalike.client._calls import BATCH_BYTES, BATCH_PAGES, DEFAULT_URL, BatchAnswers, Batches, Call, Settings
from lookalike.client._types import Answer, Collection, Page, PageProblem, Store, StoredPage

T = TypeVar("T")


class AsyncClient:
    """Asks a running ``lookalike serve`` without blocking; :class:`Client` explains the settings.

    ::

        async with AsyncClient("http://127.0.0.1:8700") as client:
            answer = await client.check({"url": url, "html": html}, store="if_new")
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
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._settings = Settings(url.rstrip("/"), token, collection, retries, backoff, longest_wait)
        self._http = http or httpx.AsyncClient(timeout=timeout)
        self._owns = http is None

    def collection(self, name: str) -> AsyncClient:
        """The same service, another collection; it shares the connections of this client."""
        other = AsyncClient.__new__(AsyncClient)
        other._settings, other._http, other._owns = replace(self._settings, collection=name), self._http, False
        return other

    async def close(self) -> None:
        """Closes the connections."""
        if self._owns:
            await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def check(self, page: Page, *, store: Store = "never", explain: bool = False) -> Answer:
        """Looks up a page, and stores it: never, if nothing like it is stored, or always."""
        return await self._run(_calls.check(self._settings, page, store, explain))

    async def check_many(
        self,
        pages: Iterable[Page] | AsyncIterable[Page],
        *,
        store: Store = "never",
        explain: bool = False,
        batch_pages: int = BATCH_PAGES,
    ) -> AsyncIterator[Answer | PageProblem]:
        """The answers to any number of pages, in their order, while they are read; one batch is held in memory.

        A page that the service cannot use is answered with a :class:`PageProblem`.
        """
        first = 0
        async for lines in _batches(Batches(batch_pages, BATCH_BYTES), pages):
            answers = BatchAnswers(first, len(lines))
            async with self._send(_calls.batch(self._settings, lines, store, explain)) as response:
                try:
                    async for line in response.aiter_lines():
                        yield answers.next(line)
                except httpx.TransportError as error:
                    raise _calls.no_answer(error, self._settings) from error
            answers.check_complete()
            first += len(lines)

    async def get(self, id: str) -> StoredPage | None:
        """What is stored about a page; nothing if it is not."""
        return await self._run(_calls.get(self._settings, id))

    async def delete(self, id: str) -> bool:
        """Removes a page; says whether it was there."""
        return await self._run(_calls.delete(self._settings, id))

    async def pages(self, *, prefix: str | None = None) -> AsyncIterator[StoredPage]:
        """All stored pages in the order of their ids, or those whose ids begin with ``prefix``."""
        after: str | None = None
        while True:
            found, after = await self._run(_calls.pages(self._settings, prefix, after))
            for page in found:
                yield page
            if after is None:
                return

    async def delete_pages(self, *, prefix: str | None = None, url: str | None = None) -> int:
        """Removes the pages whose ids begin with ``prefix``, or whose URLs match ``url`` (``http://a.org/*``); says how many."""
        removed, complete = 0, False
        while not complete:
            some, complete = await self._run(_calls.delete_pages(self._settings, prefix, url))
            removed += some
        return removed

    async def compare(self, left: Page, right: Page) -> dict[str, Any]:
        """What every method says about two pages."""
        return await self._run(_calls.compare(self._settings, left, right))

    async def stats(self) -> dict[str, Any]:
        """Statistics of the collection."""
        return await self._run(_calls.stats(self._settings))

    async def collections(self) -> list[Collection]:
        """All collections, by name."""
        found, after = await self._run(_calls.collections(self._settings, None))
        while after is not None:
            more, after = await self._run(_calls.collections(self._settings, after))
            found += more
        return found

    async def create_collection(self, name: str, **config: Any) -> Collection:
        """Creates a collection (``ngram=3``, ``threshold=0.7``, …); does nothing if it exists with these settings."""
        return await self._run(_calls.create_collection(self._settings, name, config))

    async def change_collection(self, name: str, **config: Any) -> Collection:
        """Gives a collection other settings (none for a default); it is built anew in the background, ``rebuild`` says how far that is."""
        return await self._run(_calls.change_collection(self._settings, name, config))

    async def delete_collection(self, name: str) -> bool:
        """Removes a collection with all its pages; says whether it was there."""
        return await self._run(_calls.delete_collection(self._settings, name))

    async def _run(self, call: Call[T]) -> T:
        async with self._send(call) as response:
            try:
                await response.aread()
            except httpx.TransportError as error:
                raise _calls.no_answer(error, self._settings) from error
            return call.finish(response)

    @asynccontextmanager
    async def _send(self, call: Call[Any]) -> AsyncIterator[httpx.Response]:
        """Sends a request until it is answered; a body is left to be read only if the request succeeded."""
        attempt = 0
        while True:
            wanted: float | None = None
            try:
                response = await self._http.send(call.request(self._http, self._settings), stream=True)
            except httpx.TransportError as error:
                if attempt == self._settings.retries or not _calls.may_repeat(error, call.repeatable):
                    raise _calls.no_answer(error, self._settings) from error
            else:
                try:
                    if response.is_success:
                        yield response
                        return
                    try:
                        await response.aread()
                    except httpx.TransportError as error:
                        raise _calls.no_answer(error, self._settings) from error
                    if attempt == self._settings.retries or not _calls.is_busy(response):
                        call.finish(response)  # raises, unless the page is simply not there
                        yield response
                        return
                    wanted = _calls.retry_after(response)
                finally:
                    await response.aclose()
            await asyncio.sleep(self._settings.wait(attempt, wanted))
            attempt += 1


async def _batches(batches: Batches, pages: Iterable[Page] | AsyncIterable[Page]) -> AsyncIterator[list[bytes]]:
    if not isinstance(pages, AsyncIterable):
        for lines in batches.of(pages):
            yield lines
        return
    async for page in pages:
        if full := batches.add(page):
            yield full
    if batches.lines:
        yield batches.rest()
