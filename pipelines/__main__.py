"""`python -m pipelines` is `beam-bpe`."""

import sys

from pipelines.cli.command_line import main

if __name__ == "__main__":
    sys.exit(main())
