"""The worker process of `--direct_running_mode=multi_processing`: Beam's own, less talkative.

Started as `python -m pipelines.worker_process` by `pipelines.runner_setup`; Beam hands it its
addresses in environment variables.
"""

from __future__ import annotations

import logging
import sys

from pipelines.worker_errors import hide_reported_errors

__all__ = ["main"]


def main() -> None:
    """Serve the runner until it closes the connection."""
    handler = logging.StreamHandler()
    # Beam lowers the root logger to INFO while it starts; the handler is ours.
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    hide_reported_errors()
    # Beam logs while it is imported, and would set up logging by itself.
    from apache_beam.runners.worker import sdk_worker_main  # noqa: PLC0415

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
