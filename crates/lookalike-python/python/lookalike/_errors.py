"""The exceptions. Each is also the built-in exception that fits it best."""

from __future__ import annotations


class LookalikeError(Exception):
    """Whatever goes wrong in lookalike."""


class InvalidSetting(LookalikeError, ValueError):
    """A keyword argument has a value that it cannot have, or does not go with another one."""


class InputError(LookalikeError, ValueError):
    """The source cannot be used: wrong types, nothing to compare, a file that is something else."""


class InputNotFound(InputError, FileNotFoundError):
    """A path that was named does not exist."""


class CorruptFile(LookalikeError, ValueError):
    """A result or an index is damaged, incomplete, or of a version that cannot be read."""


class OutputExists(LookalikeError, FileExistsError):
    """There is something at the place of the output that is not overwritten by itself."""


class Locked(LookalikeError, BlockingIOError):
    """Another process writes to the same output or index."""


class StorageError(LookalikeError, OSError):
    """Reading, writing or a store failed."""


class InternalError(LookalikeError, RuntimeError):
    """A fault in lookalike itself. Please report it."""


# They are shown, pickled and documented by the names under which they are imported.
for _exception in list(globals().values()):
    if isinstance(_exception, type) and issubclass(_exception, LookalikeError):
        _exception.__module__ = "lookalike"
