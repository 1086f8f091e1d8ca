"""Dicts whose keys are attributes, too."""

from __future__ import annotations

import json
from typing import Any


class Record(dict[str, Any]):
    """A dict whose keys can be written as attributes.

    >>> page = Record({"id": "a", "tokens": 12})
    >>> page.tokens, page["tokens"]
    (12, 12)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            names = ", ".join(self)
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {names}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    @classmethod
    def from_json(cls, text: str) -> Any:
        """The value that a JSON text stands for, with records for its objects."""
        return json.loads(text, object_hook=Record)
