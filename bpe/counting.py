"""Counting pre-tokens: documents to a table that training starts from.

The table's metadata says what was counted and how, so that training can refuse a table that was
made for something else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.backends.choice import get_backend
from bpe.encoding.id_arrays import Texts, binary_array, document_bytes
from bpe.encoding.special_tokens import SPECIAL_TEXT_POLICIES, SpecialTokens
from bpe.errors import CountTableError, InputError, SettingsError
from bpe.pretokenizing.schemes import get_scheme

__all__ = [
    "ONE_DOCUMENT_PER_VALUE",
    "CountMetadata",
    "apply_special_text",
    "check_count_metadata",
    "count_pretokens",
    "read_count_metadata",
]

ONE_DOCUMENT_PER_VALUE = "one document per value"
"""The document rule of counts made from arrays: pre-tokens end where a value of the array ends."""

_PREFIX = "beam_bpe."
_SCHEMA_NAME = "word_counts"
_SCHEMA_VERSION = "1"


@dataclass(frozen=True)
class CountMetadata:
    """What a count table was made of; kept in the metadata of its Arrow schema.

    scheme: pre-tokenizer. unicode_version: of its character classes. document_rule: what ended
    pre-tokens besides the scheme. special_text: `text`, `allow` or `reject`; special_tokens: the
    tokens that this was about.
    """

    scheme: str
    unicode_version: str
    document_rule: str = ONE_DOCUMENT_PER_VALUE
    special_text: str = "text"
    special_tokens: tuple[str, ...] = ()

    def to_arrow(self) -> dict[bytes, bytes]:
        """Metadata for an Arrow schema."""
        entries = {
            "schema": _SCHEMA_NAME,
            "version": _SCHEMA_VERSION,
            "scheme": self.scheme,
            "unicode_version": self.unicode_version,
            "document_rule": self.document_rule,
            "special_text": self.special_text,
            "special_tokens": json.dumps(list(self.special_tokens)),
        }
        return {(_PREFIX + key).encode(): value.encode() for key, value in entries.items()}


def count_pretokens(
    data: bytes | str | Texts,
    pretokenizer: str,
    *,
    threads: int = 1,
    first_positions: bool = False,
    special_text: str = "text",
    special_tokens: Sequence[str] = (),
) -> pa.Table:
    """Count the distinct pre-tokens of one document, or of each in an Arrow array or a list.

    The table has the columns `word` (binary, ascending by bytes) and `count` (int64), and with
    `first_positions` also `first` (int64): the smallest byte position of the word in the
    concatenation of the documents.

    The meaning of a special token's text depends on `special_text`: `text` is ordinary text;
    `allow` ends the document before it and does not count it; `reject` is an `InputError`.

    Examples:
        >>> count_pretokens("low lower low", "gpt2").to_pydict()
        {'word': [b' low', b' lower', b'low'], 'count': [1, 1, 1]}
    """
    scheme = get_scheme(pretokenizer)
    if isinstance(data, (bytes, str)):
        texts = pa.array([document_bytes(data, "a document")], pa.large_binary())
    else:
        texts = binary_array(data)
    texts, starts = apply_special_text(texts, special_text, special_tokens)
    words, counts, firsts = get_backend().count_words(
        texts, scheme, first_positions=first_positions, threads=threads
    )
    columns = {"word": words.cast(pa.binary()), "count": counts}
    if firsts is not None:
        columns["first"] = firsts if starts is None else _uncut_positions(firsts, texts, starts)
    metadata = CountMetadata(
        scheme.name,
        scheme.unicode_version,
        special_text=special_text,
        special_tokens=tuple(special_tokens),
    )
    schema = pa.schema(
        [pa.field(name, column.type, nullable=False) for name, column in columns.items()],
        metadata=metadata.to_arrow(),
    )
    return pa.table(columns, schema=schema)


def apply_special_text(
    texts: pa.LargeBinaryArray, special_text: str, special_tokens: Sequence[str]
) -> tuple[pa.LargeBinaryArray, npt.NDArray[np.int64] | None]:
    """Documents to train on, where the text of special tokens has a meaning.

    special_text: as for `count_pretokens`.

    Returns the documents, with `allow` the segments between special tokens; and where each starts
    in the concatenation of `texts` (bytes), or None if they are as they were. Raises
    `SettingsError` for another policy, and with `reject` `InputError` for the first document that
    holds a special token.
    """
    if special_text not in SPECIAL_TEXT_POLICIES:
        raise SettingsError(
            f"special_text is {special_text!r}: use one of {', '.join(SPECIAL_TEXT_POLICIES)}"
        )
    if special_text == "text" or not special_tokens:
        return texts, None
    specials = SpecialTokens({token: index for index, token in enumerate(special_tokens)})
    rows = specials.rows_with_hits(texts)
    if not rows:
        return texts, None
    if special_text == "reject":
        _refuse_special_token(specials, texts, rows[0])
    return _cut_at_special_tokens(specials, texts)


def read_count_metadata(table: pa.Table | pa.Schema) -> CountMetadata:
    """Metadata of a count table; raises `CountTableError` where it is missing or of another kind.

    Tables made elsewhere get it from `CountMetadata.to_arrow`.
    """
    schema = table.schema if isinstance(table, pa.Table) else table
    found = {
        key.decode()[len(_PREFIX) :]: value.decode()
        for key, value in (schema.metadata or {}).items()
        if key.startswith(_PREFIX.encode())
    }
    for key, wanted in (("schema", _SCHEMA_NAME), ("version", _SCHEMA_VERSION)):
        if found.get(key) != wanted:
            raise CountTableError(
                f"metadata {_PREFIX}{key} of the count table is {found.get(key, 'missing')!r}, "
                f"expected {wanted!r}: this is no table that this version counted"
            )
    try:
        tokens = json.loads(found["special_tokens"])
        return CountMetadata(
            found["scheme"],
            found["unicode_version"],
            found["document_rule"],
            found["special_text"],
            tuple(map(str, tokens)),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise CountTableError(
            f"metadata of the count table is incomplete or damaged ({error!r}): count again"
        ) from error


def check_count_metadata(found: CountMetadata, expected: CountMetadata) -> None:
    """Raise `CountTableError` that names the first entry in which two tables' kinds differ."""
    for name in CountMetadata.__dataclass_fields__:
        value, wanted = getattr(found, name), getattr(expected, name)
        if value != wanted:
            raise CountTableError(
                f"the count table was made with {name} {value!r}, but {wanted!r} is asked for: "
                "count again, or ask for what was counted"
            )


def _refuse_special_token(specials: SpecialTokens, texts: pa.LargeBinaryArray, row: int) -> None:
    data = texts[row].as_py()
    start, end, _ = specials.find(data) or (0, 0, 0)
    raise InputError(
        f"document {row} holds the special token {data[start:end].decode()!r} at byte {start}: "
        "remove it, or take it as special_text='text' or 'allow'"
    )


def _cut_at_special_tokens(
    specials: SpecialTokens, texts: pa.LargeBinaryArray
) -> tuple[pa.LargeBinaryArray, npt.NDArray[np.int64]]:
    """Segments between special tokens, and where each starts in the concatenated documents."""
    pieces: list[bytes] = []
    starts: list[int] = []
    offset = 0
    for text in texts:
        data = text.as_py()
        for start, end, token in specials.split(data):
            if token is None:
                pieces.append(data[start:end])
                starts.append(offset + start)
        offset += len(data)
    return pa.array(pieces, pa.large_binary()), np.array(starts, np.int64)


def _uncut_positions(
    firsts: pa.Int64Array, pieces: pa.LargeBinaryArray, starts: npt.NDArray[np.int64]
) -> pa.Int64Array:
    """Positions in the concatenated pieces -> positions in the documents they were cut from."""
    ends = np.cumsum(pc.binary_length(pieces).to_numpy())
    positions = firsts.to_numpy()
    index = np.searchsorted(ends, positions, side="right")
    before = np.concatenate(([0], ends))[index]
    return pa.array(positions - before + starts[index], pa.int64())
