"""Progress bars, with tqdm where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[str, int, int, int], None]

# The stages that count bytes; the others count pages.
_BYTES = {"count", "read", "verify"}


@contextmanager
def shown(wanted: bool | Report | None) -> Iterator[Report | None]:
    """What the engine reports its progress to: a function of the caller, bars, or nothing.

    Without a wish, there are bars where a person can see them.
    """
    if callable(wanted):
        yield wanted
        return
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty() or _is_notebook()
    tqdm = _tqdm() if wanted else None
    if tqdm is None:
        yield None
        return
    bars = _Bars(tqdm)
    try:
        yield bars.report
    finally:
        bars.close()


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _is_notebook() -> bool:
    return "ipykernel" in sys.modules


class _Bars:
    """One bar per stage."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._stage: str | None = None
        self._bar: Any = None

    def report(self, stage: str, done: int, total: int, pages: int) -> None:
        if stage != self._stage:
            self.close()
            is_bytes = stage in _BYTES
            self._bar = self._tqdm(
                desc=stage,
                total=total or None,
                unit="B" if is_bytes else " pages",
                unit_scale=True,
                leave=False,
            )
            self._stage = stage
        if pages:
            self._bar.set_postfix(pages=pages, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
