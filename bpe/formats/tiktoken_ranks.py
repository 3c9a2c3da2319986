"""`.tiktoken` rank files: lines of a token in base64, a space, and its rank, which is its id.

Such a file holds no merges, no pre-tokenizer and no special tokens. Merges are recovered by rank;
the caller names the rest.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bpe.backends.choice import get_backend
from bpe.encoding.added_tokens import special_added_tokens
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.errors import ModelFileError, SettingsError, VocabularyError
from bpe.formats.file_access import BOM, read_file, write_file
from bpe.formats.published_ranks import PUBLISHED_FILES, PublishedFile
from bpe.pretokenizing.schemes import SCHEME_NAMES, get_scheme

__all__ = [
    "PUBLISHED_FILES",
    "PublishedFile",
    "is_rank_file",
    "published_file",
    "read_tiktoken_ranks",
    "write_tiktoken_ranks",
]

# A file without surprises; any other is read line by line.
_PLAIN = re.compile(rb"(?:[A-Za-z0-9+/]+={0,2} [0-9]{1,18}\n)*")
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?[A-Za-z0-9+/]+={0,2} [0-9]{1,18}\s")
_SNIFFED_BYTES = 4096


def is_rank_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file starts as rank files do, whatever its name is."""
    try:
        with Path(path).open("rb") as stream:
            return _FIRST_LINE.match(stream.read(_SNIFFED_BYTES)) is not None
    except OSError:
        return False


def published_file(path: str | os.PathLike[str]) -> PublishedFile | None:
    """Tell which published file this one is a copy of, if one of `PUBLISHED_FILES`."""
    return PUBLISHED_FILES.get(hashlib.sha256(read_file(path)).hexdigest())


def read_tiktoken_ranks(
    path: str | os.PathLike[str],
    *,
    pretokenizer: str | None = None,
    special_tokens: Mapping[str, int] | Sequence[str] | None = None,
) -> TokenizerModel:
    """Model of a rank file.

    pretokenizer: the scheme that the vocabulary was made with; the file does not tell it. None
        takes the scheme of a published file, and is refused for any other.
    special_tokens: text to id; or texts alone, which get their published ids in a published
        file, and the next free ids after the largest rank otherwise; None takes the published
        ones of a published file.

    A line without bytes before its rank, as Whisper's file has one, is no token.
    Raises `ModelFileError` that names the file and line, `SettingsError` for the arguments.
    """
    data = read_file(path)
    published = PUBLISHED_FILES.get(hashlib.sha256(data).hexdigest())
    if pretokenizer is None:
        if published is None:
            raise SettingsError(_which_pretokenizer(path))
        pretokenizer = published.pretokenizer
    scheme = get_scheme(pretokenizer)
    is_as_published = published is not None and pretokenizer == published.pretokenizer
    ranks = _parse_ranks(data.removeprefix(BOM.encode()), path)
    if special_tokens is None:
        special_tokens = published.special_tokens if published else ()
    if not isinstance(special_tokens, Mapping):
        special_tokens = _number_specials(special_tokens, ranks, published)
    ranks.pop(b"", None)
    try:
        merges, unmerged = get_backend().recover_merges(ranks)
        return TokenizerModel(
            tokens={rank: token for token, rank in ranks.items()},
            merges=merges,
            scheme=scheme,
            added_tokens=special_added_tokens(special_tokens),
            whole_piece=bool(unmerged),
            normalizer=published.normalizer if published and is_as_published else None,
        )
    except VocabularyError as error:
        raise ModelFileError(f"{path}: {error}") from error


def write_tiktoken_ranks(model: TokenizerModel, path: str | os.PathLike[str]) -> None:
    """Write the rank file of a model; special tokens and the scheme are not part of it.

    Raises `VocabularyError` if the file would not mean the same: ids that are not in the order
    of the merges, tokens that are reached in another way, or a normalizer.
    """
    target = Path(path).name
    if model.normalizer is not None:
        raise VocabularyError(
            f"{target} cannot be written: a .tiktoken file has no place for the normalizer "
            f"{model.normalizer}; write tokenizer.json instead"
        )
    merges, unmerged = get_backend().recover_merges(
        {data: token_id for token_id, data in model.tokens.items()}
    )
    if merges != model.merges:
        raise VocabularyError(
            f"{target} cannot be written: ranks in a .tiktoken file are ids, and the ids of this "
            f"vocabulary are not in the order of its merges {_first_difference(merges, model)}; "
            "write tokenizer.json instead"
        )
    if unmerged and not model.whole_piece:
        raise VocabularyError(
            f"{target} cannot be written: token {unmerged[0]} ({model.tokens[unmerged[0]]!r}) is "
            "made by no merge, and a .tiktoken file would give it to whole pre-tokens; "
            "write tokenizer.json instead"
        )
    lines = [
        b"%s %d\n" % (base64.b64encode(model.tokens[token_id]), token_id)
        for token_id in sorted(model.tokens)
    ]
    write_file(path, b"".join(lines))


def _parse_ranks(data: bytes, path: str | os.PathLike[str]) -> dict[bytes, int]:
    return _parse_plain_ranks(data) or _parse_lines(data, path)


def _parse_plain_ranks(data: bytes) -> dict[bytes, int] | None:
    """Ranks of a file that holds nothing to complain of; None for any other."""
    if not _PLAIN.fullmatch(data):
        return None
    fields = data.split()
    try:
        ranks = dict(
            zip(map(binascii.a2b_base64, fields[::2]), map(int, fields[1::2]), strict=True)
        )
    except binascii.Error:
        return None
    distinct = len(ranks) == len(set(ranks.values())) == len(fields) // 2
    return ranks if distinct else None


def _parse_lines(data: bytes, path: str | os.PathLike[str]) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    lines: dict[int, int] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        fields = line.split()
        try:
            token = base64.b64decode(fields[0].lstrip(b"=") and fields[0], validate=True)
            rank = int(fields[1])
            well_formed = len(fields) == 2 and rank >= 0
        except (IndexError, ValueError, binascii.Error):
            well_formed = False
        if not well_formed:
            raise ModelFileError(
                f"{path}, line {number}: {line[:60]!r} is not a token in base64, a space and a "
                "rank; is this a .tiktoken file?"
            )
        if token in ranks:
            raise ModelFileError(
                f"{path}, line {number}: token {token!r} is there already, with rank "
                f"{ranks[token]} (line {lines[ranks[token]]})"
            )
        if rank in lines:
            raise ModelFileError(
                f"{path}, line {number}: rank {rank} is there already, in line {lines[rank]}"
            )
        ranks[token] = rank
        lines[rank] = number
    return ranks


def _number_specials(
    texts: Sequence[str], ranks: Mapping[bytes, int], published: PublishedFile | None
) -> dict[str, int]:
    if isinstance(texts, str):
        raise SettingsError(f"special_tokens is the string {texts!r}: give a list, [{texts!r}]")
    known = published.special_tokens if published else {}
    numbered = {text: known[text] for text in texts if text in known}
    next_id = max((*ranks.values(), *known.values()), default=-1) + 1
    for text in texts:
        if text not in numbered:
            numbered[text] = next_id
            next_id += 1
    return numbered


def _which_pretokenizer(path: str | os.PathLike[str]) -> str:
    return (
        f"{path}: a .tiktoken file does not say how text is cut into pre-tokens, and with "
        "another scheme than the vocabulary's own the ids come out different; this one is not "
        f"known by its sha256: pass pretokenizer= (--pretokenizer), one of "
        f"{', '.join(SCHEME_NAMES)}, or regex:PATTERN"
    )


def _first_difference(merges: Sequence[tuple[int, int, int]], model: TokenizerModel) -> str:
    for rank, (found, wanted) in enumerate(zip(merges, model.merges, strict=False)):
        if found != wanted:
            left, right, new = wanted
            pair = (model.tokens[left], model.tokens[right])
            return f"(merge {rank}, {pair}, has id {new}; by ids that place is token {found[2]})"
    return f"({len(model.merges)} merges, of which ids give {len(merges)})"
