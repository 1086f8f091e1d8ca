"""Temporary directories that live as long as what needs them."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from types import TracebackType


class Scratch:
    """A temporary directory. It is deleted at the end of a ``with`` block, or, if it is kept, with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="lookalike-"))
        self._delete = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._is_kept = False

    def keep(self) -> Scratch:
        """The same, no longer deleted at the end of the block."""
        self._is_kept = True
        return self

    def delete(self) -> None:
        """Deletes it now."""
        self._delete()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_kept:
            self.delete()
