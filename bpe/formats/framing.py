"""What the post-processor of a tokenizer.json puts around each text.

Here nothing is put around texts unless an option says so; this is for saying what a file would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["framing_of"]


def framing_of(post_processor: Any) -> tuple[list[int], list[int]]:
    """Ids that it puts before, and after, a single text; none for what it is not known to put."""
    before: list[int] = []
    after: list[int] = []
    kind = post_processor.get("type") if isinstance(post_processor, dict) else None
    if kind == "Sequence":
        for step in _list_of(post_processor.get("processors")):
            # A step may hold steps, but no file has them nested deeper than its JSON may be.
            more_before, more_after = framing_of(step)
            before, after = more_before + before, after + more_after
    elif kind in ("BertProcessing", "RobertaProcessing"):
        before, after = _id_of(post_processor.get("cls")), _id_of(post_processor.get("sep"))
    elif kind == "TemplateProcessing":
        target = before
        for piece in _list_of(post_processor.get("single")):
            if isinstance(piece, dict) and "Sequence" in piece:
                target = after
            elif isinstance(piece, dict):
                target += _template_ids(post_processor, piece)
    return before, after


def _template_ids(template: Mapping[str, Any], piece: Mapping[str, Any]) -> list[int]:
    special, known = piece.get("SpecialToken"), template.get("special_tokens")
    if not isinstance(special, dict) or not isinstance(known, dict):
        return []
    entry = known.get(str(special.get("id")))
    ids = _list_of(entry.get("ids")) if isinstance(entry, dict) else []
    return [token_id for token_id in ids if isinstance(token_id, int)]


def _id_of(pair: Any) -> list[int]:
    """The id of a (text, id) pair."""
    values = _list_of(pair)
    return values[1:2] if len(values) == 2 and isinstance(values[1], int) else []


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
