"""A client of the service (``lookalike serve``), with and without asyncio.

::

    from lookalike.client import Client

    with Client("http://127.0.0.1:8700", token="…") as client:
        answer = client.check({"url": "http://a.org/x", "html": html}, store="if_new")
        print(answer.verdict, [match.id for match in answer.of])

It needs httpx (the extra ``client``), and nothing else of this package. ``lookalike.client.scrapy`` is a middleware for
Scrapy.
"""

try:
    import httpx as _httpx  # noqa: F401
except ImportError as error:
    raise ImportError("the client of the service needs httpx: pip install httpx") from error

from lookalike.client._async import AsyncClient
from lookalike.client._errors import (
    BadRequest,
    Conflict,
    NoAnswer,
    NotAllowed,
    NotFound,
    ServerFault,
    ServiceError,
    Unavailable,
)
from lookalike.client._sync import Client
from lookalike.client._types import Answer, Collection, Match, Page, PageProblem, StoredPage

__all__ = [
    "Answer",
    "AsyncClient",
    "BadRequest",
    "Client",
    "Collection",
    "Conflict",
    "Match",
    "NoAnswer",
    "NotAllowed",
    "NotFound",
    "Page",
    "PageProblem",
    "ServerFault",
    "ServiceError",
    "StoredPage",
    "Unavailable",
]
