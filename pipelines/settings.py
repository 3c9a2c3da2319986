"""Settings of a run as plain values: their digest, and how two runs' settings differ.

Only what decides the output belongs in: never the backend, the runner or its workers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["describe_differences", "digest_of"]

_LONGEST_VALUE = 200


def digest_of(value: Any) -> str:
    """SHA-256 (hexadecimal) of a JSON value in its canonical spelling."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def describe_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One phrase per setting that differs, old value first: 'vocab_size: was 512, now 1024'."""
    phrases = []
    for name in sorted(old.keys() | new.keys()):
        before, now = old.get(name), new.get(name)
        if before != now:
            phrases.append(f"{name}: was {_show(before)}, now {_show(now)}")
    return phrases


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
