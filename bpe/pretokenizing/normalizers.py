"""What a tokenizer does to a text before it looks for tokens: steps in a row, known by their spec.

A spec is a name of `bpe.pretokenizing.normalization.FORMS`, or JSON: a list of steps, each a list
of its name and its texts. Bytes that are not valid UTF-8 stay as they are.

    >>> normalizer = get_normalizer('[["Prepend"," "],["Replace","_"," "]]')
    >>> normalizer.normalize(b"a_b")
    b' a b'
    >>> get_normalizer("NFX")
    Traceback (most recent call last):
    ...
    bpe.errors.SettingsError: normalizer 'NFX' is not known: use one of NFC, NFD, NFKC, NFKD, ...
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import SettingsError
from bpe.pretokenizing.normalization import FORMS, normalize, normalize_array

__all__ = ["Normalizer", "Step", "get_normalizer", "normalizer_spec"]

Step = tuple[str, ...]
"""Name of a step, and its texts."""

# Names of the steps with texts, and how many they have.
_TEXTS = {"Prepend": 1, "PrependToTexts": 1, "PrependMissing": 1, "PrependFirst": 1, "Replace": 2}
_MOST_STEPS = 20
_SHOWN_CHARACTERS = 200


class Normalizer:
    """Steps in a row; `get_normalizer` makes one.

    `Prepend` puts a text before every text that is not empty, `PrependMissing` only where it does
    not stand there already, and `PrependFirst` does that only where a document begins.
    `PrependToTexts` is `Prepend`, but for the texts of added tokens. `Replace` replaces each
    occurrence of the first text by the second.

    Attributes:
        spec: what `get_normalizer` makes it of.
        steps: its steps.
        prefix: bytes that the steps put before a text; decoding takes them away.
    """

    def __init__(self, spec: str, steps: Sequence[Step]) -> None:
        self.spec = spec
        self.steps = tuple(steps)
        before = [step[1] for step in steps if step[0].startswith("Prepend")]
        self.prefix = "".join(reversed(before)).encode()

    def normalize(self, data: bytes, *, begins: bool = True, is_entry: bool = False) -> bytes:
        """The text after all steps.

        begins: whether a document begins with it. is_entry: whether it is an added token's.
        """
        for name, *texts in self.steps:
            if name in FORMS:
                data = normalize(name, data)
            elif name == "Replace":
                data = data.replace(texts[0].encode(), texts[1].encode())
            elif data and not (is_entry and name == "PrependToTexts"):
                is_there = data.startswith(texts[0].encode())
                if _is_wanted(name, is_there, begins=begins):
                    data = texts[0].encode() + data
        return data

    def normalize_array(self, texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
        """The same for each text, each a document; the array itself where nothing changes.

        texts: without nulls.
        """
        for name, *arguments in self.steps:
            if name in FORMS:
                texts = normalize_array(name, texts)
            elif name == "Replace":
                old, new = (each.encode() for each in arguments)
                if pc.any(pc.match_substring(texts, old)).as_py():
                    texts = pc.replace_substring(texts, old, new)
            else:
                before = pa.scalar(arguments[0].encode(), pa.large_binary())
                joined = pc.binary_join_element_wise(before, texts, pa.scalar(b"", before.type))
                as_is = pc.equal(pc.binary_length(texts), 0)
                if name in ("PrependMissing", "PrependFirst"):
                    as_is = pc.or_(as_is, pc.starts_with(texts, arguments[0].encode()))
                texts = pc.if_else(as_is, texts, joined)
        return texts


def _is_wanted(name: str, is_there: bool, *, begins: bool) -> bool:  # noqa: FBT001
    """Whether a step puts its text before another."""
    if name in ("Prepend", "PrependToTexts"):
        return True
    return not is_there and (begins or name == "PrependMissing")


@lru_cache(maxsize=64)
def get_normalizer(spec: str) -> Normalizer:
    """Normalizer of a spec; `SettingsError` for one that is none."""
    if not spec.startswith("["):
        if spec not in FORMS:
            raise SettingsError(
                f"normalizer {spec[:_SHOWN_CHARACTERS]!r} is not known: use one of "
                f"{', '.join(FORMS)}, or a list of steps"
            )
        return Normalizer(spec, [(spec,)])
    try:
        rows = json.loads(spec)
    except ValueError as error:
        raise SettingsError(
            f"normalizer {spec[:_SHOWN_CHARACTERS]!r} is no list of steps: {error}"
        ) from None
    if len(rows) > _MOST_STEPS:
        raise SettingsError(f"a normalizer has {len(rows)} steps, and at most {_MOST_STEPS}")
    for row in rows:
        if not _is_step(row):
            raise SettingsError(
                f"normalizer step {str(row)[:_SHOWN_CHARACTERS]} is not known: use one of "
                f"{', '.join((*FORMS, *_TEXTS))}, with its texts"
            )
    return Normalizer(spec, [tuple(row) for row in rows])


def normalizer_spec(steps: Sequence[Step]) -> str | None:
    """Spec of steps; None for none."""
    if not steps:
        return None
    if len(steps) == 1 and steps[0][0] in FORMS:
        return steps[0][0]
    return json.dumps(steps, ensure_ascii=False, separators=(",", ":"))


def _is_step(row: object) -> bool:
    if not isinstance(row, list) or not all(isinstance(each, str) for each in row):
        return False
    name, *texts = row or [""]
    wanted = 0 if name in FORMS else _TEXTS.get(name, -1)
    # An empty text would be found between all characters.
    return len(texts) == wanted and (name != "Replace" or bool(texts[0]))
