"""A disk on which every file takes a while to appear.

Python imports a module of this name when it starts, so that with this folder in PYTHONPATH a
driver and all its workers are slow in the same way: a test that must signal a run at a certain
moment has time to see it, however fast the machine is.
"""

from __future__ import annotations

import os
import time
from typing import Any

_replace = os.replace


def _replace_slowly(*arguments: Any, **named: Any) -> None:
    time.sleep(float(os.environ["SECONDS_PER_RENAME"]))
    _replace(*arguments, **named)


os.replace = _replace_slowly
