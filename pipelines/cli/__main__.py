"""`python -m pipelines.cli` is `beam-bpe`."""

from __future__ import annotations

import sys

from pipelines.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
