"""Scrapy asks the service about every HTML page it fetches, and drops or marks those that were seen.

::

    # settings.py
    DOWNLOADER_MIDDLEWARES = {"lookalike.client.scrapy.LookalikeMiddleware": 50}
    LOOKALIKE_URL = "http://127.0.0.1:8700"

It is a downloader middleware with a small number, so that it gets responses after they were redirected and decompressed, and before the
spider: the links of a page that is dropped are never extracted. It needs Scrapy's asyncio support, which is on by default.

========================  ===========================  ==================================================================
setting                   default                      meaning
========================  ===========================  ==================================================================
``LOOKALIKE_URL``         ``http://127.0.0.1:8700``    the service
``LOOKALIKE_TOKEN``       none                         a token that may write; not needed if the service has no tokens
``LOOKALIKE_COLLECTION``  ``default``                  the collection
``LOOKALIKE_SEEN``        ``"mark"``                   ``"mark"``: pages go to the spider with ``response.meta["lookalike"]``, an
                                                       :class:`~lookalike.client.Answer`; ``"drop"``: seen pages do not
``LOOKALIKE_STORE``       ``"if_new"``                 ``"never"``, ``"if_new"`` or ``"always"``
``LOOKALIKE_ON_ERROR``    ``"pass"``                   what becomes of a page when the service does not answer: ``"pass"``: it goes
                                                       to the spider without an answer; ``"drop"``: it does not
``LOOKALIKE_TIMEOUT``     ``30``                       seconds for a request to the service
``LOOKALIKE_RETRIES``     ``5``                        how often a busy service is asked again
========================  ===========================  ==================================================================

A page is seen if the service has a page like it under another URL: a page that is fetched again, and is like nothing but itself, is not
dropped. ``Request(…, meta={"lookalike": False})`` is not asked about. The statistics count ``lookalike/new``, ``near``, ``exact``, ``dropped``
and ``failed``.
"""

from __future__ import annotations

import logging
from typing import Any, cast

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import HtmlResponse, Request, Response
from scrapy.settings import BaseSettings
from scrapy.statscollectors import StatsCollector

from lookalike.client import AsyncClient, BadRequest, ServiceError
from lookalike.client._calls import DEFAULT_URL
from lookalike.client._types import Store

logger = logging.getLogger(__name__)

#: The key in ``response.meta``.
META = "lookalike"


class SeenPage(IgnoreRequest):
    """A response that was dropped, as a page like it was seen. ``answer`` says which."""

    def __init__(self, url: str, answer: Any) -> None:
        super().__init__(f"{url} is like {answer.of[0].id}, which was seen")
        self.answer = answer


class LookalikeMiddleware:
    """Drops or marks pages that were seen; the module explains the settings."""

    def __init__(self, settings: BaseSettings, stats: StatsCollector) -> None:
        self.drops_seen = _choice(settings, "LOOKALIKE_SEEN", "mark", "drop") == "drop"
        self.drops_unknown = _choice(settings, "LOOKALIKE_ON_ERROR", "pass", "drop") == "drop"
        self.store = cast(Store, _choice(settings, "LOOKALIKE_STORE", "if_new", "never", "always"))
        self.stats = stats
        self.client = AsyncClient(
            settings.get("LOOKALIKE_URL") or DEFAULT_URL,
            token=settings.get("LOOKALIKE_TOKEN"),
            collection=settings.get("LOOKALIKE_COLLECTION"),
            timeout=settings.getfloat("LOOKALIKE_TIMEOUT", 30.0),
            retries=settings.getint("LOOKALIKE_RETRIES", 5),
        )

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LookalikeMiddleware:
        reactor = crawler.settings.get("TWISTED_REACTOR") or ""
        if crawler.settings.getbool("TWISTED_REACTOR_ENABLED", True) and "asyncio" not in reactor:
            raise NotConfigured(f"{cls.__name__} needs the asyncio reactor; TWISTED_REACTOR is {reactor!r}")
        if crawler.stats is None:
            raise NotConfigured(f"{cls.__name__} needs a crawler that has started")
        middleware = cls(crawler.settings, crawler.stats)
        crawler.signals.connect(middleware.spider_closed, signal=signals.spider_closed)
        return middleware

    async def spider_closed(self) -> None:
        await self.client.close()

    async def process_response(self, request: Request, response: Response) -> Response:
        """Asks about a page; raises `SeenPage` if it is not to reach the spider."""
        if not isinstance(response, HtmlResponse) or response.status != 200 or request.meta.get(META) is False:
            return response
        try:
            answer = await self.client.check({"url": response.url, "html": response.text}, store=self.store)
        except ServiceError as error:
            # A page that is too large, or a URL that is too long, says nothing about the service.
            level = logging.WARNING if isinstance(error, BadRequest) else logging.ERROR
            logger.log(level, "not asked about %s: %s", response.url, error)
            self.stats.inc_value("lookalike/failed")
            if self.drops_unknown:
                raise IgnoreRequest(f"the service did not answer for {response.url}") from error
            return response
        self.stats.inc_value(f"lookalike/{answer.verdict}")
        if self.drops_seen and answer.seen:
            self.stats.inc_value("lookalike/dropped")
            logger.debug("dropped %s: %s of %s", response.url, answer.verdict, answer.of[0].id)
            raise SeenPage(response.url, answer)
        request.meta[META] = answer
        return response


def _choice(settings: BaseSettings, name: str, default: str, *others: str) -> str:
    value = settings.get(name) or default
    if value not in (default, *others):
        raise ValueError(f"{name} must be one of {', '.join((default, *others))}, not {value!r}")
    return cast(str, value)
