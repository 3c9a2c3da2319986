"""A worker process ends with the driver that started it, however that one dies.

The connection between the two only breaks once there is one, and a driver may be killed before. A
worker that lived on would write into the output of the next run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

__all__ = ["DRIVER_VARIABLE", "end_with_driver"]

DRIVER_VARIABLE = "BEAM_BPE_DRIVER"
"""Environment variable with the process id of the driver, which is the worker's parent."""

_PR_SET_PDEATHSIG = 1
_SECONDS_BETWEEN_LOOKS = 0.5


def end_with_driver() -> None:
    """From now on, end this process when its driver is no longer its parent.

    Linux does it at once; on every system a thread looks from time to time.
    """
    driver = int(os.environ.get(DRIVER_VARIABLE) or os.getppid())
    _ask_kernel()
    threading.Thread(target=_watch, args=(driver,), name="driver-watch", daemon=True).start()


def _ask_kernel() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(driver: int) -> None:
    # It may have died before this process asked the kernel: the first look is at once.
    while os.getppid() == driver:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)
