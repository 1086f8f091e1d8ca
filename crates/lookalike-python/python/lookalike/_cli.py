"""The command line, as ``lookalike`` after ``pip install``."""

from __future__ import annotations

import signal
import sys

from lookalike import _lookalike


def main() -> int:
    """Runs the command that the arguments describe, and returns its exit code."""
    # Python's own handler only notes the signal, and nothing would look at the note before the command ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _lookalike.main(["lookalike", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
