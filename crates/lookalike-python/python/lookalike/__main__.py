"""``python -m lookalike``: the command line."""

import sys

from lookalike._cli import main

sys.exit(main())
