"""What goes wrong between a client and the service."""

from __future__ import annotations

import json
from typing import Any, Mapping

from lookalike._errors import LookalikeError


class ServiceError(LookalikeError):
    """The service refused a request, or could not answer it.

    ``status`` is the HTTP status (0 if there was no answer), ``type`` the kind of problem (``urn:lookalike:…``, which does not change),
    ``detail`` what went wrong and what to do about it, ``request_id`` what the log of the service calls the request, and
    ``retry_after`` the seconds after which it is worth another try, if the service said so.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        type: str = "about:blank",
        title: str = "",
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{title}: {detail}" if title else detail)
        self.detail = detail
        self.status = status
        self.type = type
        self.title = title
        self.request_id = request_id
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.detail, {**self.__dict__}))


def _rebuild(kind: type[ServiceError], detail: str, state: dict[str, Any]) -> ServiceError:
    error = kind(detail, title=state["title"])
    error.__dict__.update(state)
    return error


class NoAnswer(ServiceError, ConnectionError):
    """The service cannot be reached, or broke off: whether it did what was asked is not known."""


class BadRequest(ServiceError, ValueError):
    """The request is not valid, or too large: sending it again does not help."""


class NotAllowed(ServiceError, PermissionError):
    """The token is missing or wrong, or does not allow this."""


class NotFound(ServiceError, LookupError):
    """There is no such collection, page or path."""


class Conflict(ServiceError):
    """The collection has other settings than the client expects, or cannot do this now."""


class Unavailable(ServiceError):
    """The service is busy, starting, stopping, or its disk is full; it was asked again as often as the client allows."""


class ServerFault(ServiceError):
    """A fault of the service; its log has the details under ``request_id``."""


_KINDS: dict[int, type[ServiceError]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    429: Unavailable,
    503: Unavailable,
    507: Unavailable,
}


def error_of(status: int, body: bytes, headers: Mapping[str, str], retry_after: float | None) -> ServiceError:
    """The exception for a response that is not a success."""
    kind = _KINDS.get(status, BadRequest if status < 500 else ServerFault)
    problem: dict[str, Any] = {}
    try:
        parsed = json.loads(body)
        if isinstance(parsed, dict):
            problem = parsed
    except ValueError:
        pass
    return kind(
        # Something between the client and the service may answer, too.
        str(problem.get("detail") or f"the answer had the status {status}, and was not from the service"),
        status=status,
        type=str(problem.get("type", "about:blank")),
        title=str(problem.get("title", "")),
        request_id=headers.get("x-request-id"),
        retry_after=retry_after,
    )
