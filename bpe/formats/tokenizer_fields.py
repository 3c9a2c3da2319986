"""Members of a tokenizer.json, checked as they are read; what is refused is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from bpe.errors import ModelFileError
from bpe.formats.file_access import shown

__all__ = ["UnsupportedFileError", "flag", "member", "refusal", "refuse_unless", "steps_of"]

PathLike = str | os.PathLike[str]


class UnsupportedFileError(ModelFileError):
    """The file asks for what the core cannot do exactly; another library may."""

    remedy = "give a file without it, or take it out if your texts do not need it"


def member(parent: Mapping[str, Any], name: str, kind: type, path: PathLike) -> Any:
    """A member that must be of a kind."""
    value = parent.get(name)
    if not isinstance(value, kind):
        found = "is missing" if value is None else f"is a {type(value).__name__}"
        raise UnsupportedFileError(f"{path}: {name!r} {found}, where a {kind.__name__} is expected")
    return value


def flag(
    parent: Mapping[str, Any], name: str, place: str, path: PathLike, *, default: bool
) -> bool:
    """A member that is true or false; `default` where it is missing."""
    value = parent.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ModelFileError(f"{path}: {place}.{name} is {shown(value)}, not true or false")
    return value


def steps_of(value: Any, members: str, setting: str, path: PathLike) -> list[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer: those of a Sequence, and of those in it."""
    found: list[dict[str, Any]] = []
    waiting: list[Any] = [value]
    while waiting:
        step = waiting.pop()
        if not isinstance(step, dict) or not isinstance(step.get("type"), str):
            raise _no_step(value, members, setting, path)
        if step["type"] != "Sequence":
            found.append(step)
        elif isinstance(step.get(members), list):
            waiting += reversed(step[members])
        else:
            raise _no_step(value, members, setting, path)
    return found


def _no_step(value: Any, members: str, setting: str, path: PathLike) -> UnsupportedFileError:
    return UnsupportedFileError(
        f"{path}: {setting} is {shown(value)}, which is no step with a type, nor a Sequence of "
        f"such {members}"
    )


def refuse_unless(honoured: bool, path: PathLike, setting: str, value: object) -> None:  # noqa: FBT001
    """Refuse a value that the core does not do exactly, by the name of its setting."""
    if not honoured:
        raise refusal(path, setting, value)


def refusal(path: PathLike, setting: str, value: object) -> UnsupportedFileError:
    """The error for a value that the core does not do exactly."""
    text = shown(value) if not isinstance(value, str) else f'"{shown(value)[1:-1]}"'
    return UnsupportedFileError(f"{path}: {setting} is {text}, which cannot be honoured exactly")
