"""BPE over characters with byte fallback: Llama 2, Mistral, Gemma, Phi-3 and their like.

Both forms are read: a tokenizer.json, and SentencePiece's own `.model`. A blank is written U+2581
there; here it is a blank, and U+2581 in a text becomes one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bpe.encoding.added_tokens import AddedToken
from bpe.encoding.characters import BLANK_SIGN
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.errors import ModelFileError, VocabularyError
from bpe.formats.gpt2_files import SpelledMerges
from bpe.formats.sentencepiece_model import BPE, Kind, SentencePieceModel
from bpe.pretokenizing.normalization import FORMS
from bpe.pretokenizing.normalizers import Step, normalizer_spec
from bpe.pretokenizing.schemes import Scheme, get_scheme

__all__ = [
    "character_steps",
    "model_of_pieces",
    "model_of_vocab",
    "render_character_parts",
    "spell_token",
]

PathLike = str | os.PathLike[str]

_BYTE = re.compile(r"<0x([0-9A-F]{2})>\Z")
_TO_BLANKS: Step = ("Replace", BLANK_SIGN, " ")
_EACH_BLANK = r" [^ ]*|[^ ]+"
_NO_OP_SPLIT = {"pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}


def model_of_vocab(
    vocab: Mapping[str, int],
    merges: SpelledMerges,
    added_tokens: Sequence[AddedToken],
    *,
    normalizer: Sequence[Step],
    cuts_at_blanks: bool,
    path: PathLike,
    post_processor: Any = None,
) -> TokenizerModel:
    """Model of a spelled vocabulary.

    normalizer: steps as of `character_steps`. cuts_at_blanks: whether each blank begins a
    pre-token; if not, pre-tokens are cut where that changes nothing.

    Raises `ModelFileError` for what cannot be honoured exactly, `VocabularyError` for contents that
    contradict each other.
    """
    alone = {token.text for token in added_tokens}.difference(
        merges.lefts, merges.rights, map("".join, zip(merges.lefts, merges.rights, strict=True))
    )
    tokens, spare = _tokens_of(vocab, alone, path)
    try:
        triples = [
            (vocab[left], vocab[right], vocab[left + right])
            for left, right in zip(merges.lefts, merges.rights, strict=True)
        ]
    except KeyError as error:
        raise ModelFileError(
            f"{path}: a merge has or makes {str(error)[:80]}, which is no entry of model.vocab"
        ) from None
    return TokenizerModel(
        tokens=tokens,
        merges=triples,
        scheme=get_scheme(f"regex:{_EACH_BLANK}") if cuts_at_blanks else _free_scheme(tokens),
        added_tokens=tuple(added_tokens),
        normalizer=normalizer_spec(normalizer),
        characters=True,
        spare_tokens=spare,
        post_processor=post_processor,
    )


def _tokens_of(
    vocab: Mapping[str, int], alone: set[str], path: PathLike
) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Tokens that text can get, and byte pieces of characters that have a token of their own."""
    tokens: dict[int, bytes] = {}
    byte_pieces: dict[bytes, int] = {}
    for text, token_id in vocab.items():
        if text in alone:
            continue
        byte = _BYTE.match(text)
        if byte is not None:
            byte_pieces[bytes.fromhex(byte[1])] = token_id
        elif " " in text:
            raise ModelFileError(
                f"{path}: token {token_id} is {text[:40]!r}, with a blank that no text holds once "
                "blanks are U+2581; take it out"
            )
        elif text:
            tokens[token_id] = text.replace(BLANK_SIGN, " ").encode()
    known = set(tokens.values())
    spare = {token_id: byte for byte, token_id in byte_pieces.items() if byte in known}
    tokens |= {token_id: byte for byte, token_id in byte_pieces.items() if byte not in known}
    return tokens, spare


def _free_scheme(tokens: Mapping[int, bytes]) -> Scheme:
    """Pre-tokens that no token lies across, so that merging them apart changes nothing.

    A blank after another character begins one, but after characters that precede a blank inside a
    token.
    """
    joined: set[str] = set()
    for data in tokens.values():
        if b" " in data.lstrip(b" "):
            text = data.decode()
            joined.update(left for left, right in pairwise(text) if right == " " != left)
    if not joined:
        return get_scheme(r"regex: *[^ ]+| +")
    inside = "".join(re.escape(each) for each in sorted(joined))
    return get_scheme(rf"regex: *(?:[^ {inside}]|[{inside}] *)+| +")


def character_steps(
    normalizer: Iterable[Mapping[str, Any]], pre_tokenizer: Sequence[Mapping[str, Any]]
) -> tuple[list[Step], bool] | None:
    """Steps of a tokenizer.json as a normalizer, and whether each blank begins a pre-token.

    Blanks and the sign for them change places. None for steps that are not honoured.
    """
    steps: list[Step] = []
    replaces = False
    for step in normalizer:
        kind = step.get("type")
        if replaces:
            return None  # what comes later sees signs
        if kind in FORMS:
            steps.append((str(kind),))
        elif kind == "Prepend" and step.get("prepend") == BLANK_SIGN:
            steps.append(("Prepend", " "))
        elif kind == "Replace" and step.get("pattern") == {"String": " "}:
            replaces = step.get("content") == BLANK_SIGN
            if not replaces:
                return None
        else:
            return None
    if replaces:
        settings = [{k: v for k, v in step.items() if k != "type"} for step in pre_tokenizer]
        return ([*steps, _TO_BLANKS], False) if settings in ([], [_NO_OP_SPLIT]) else None
    if steps and steps[-1][0] == "Prepend":
        return None
    return _metaspace_steps(steps, pre_tokenizer)


def _metaspace_steps(
    steps: list[Step], pre_tokenizer: Sequence[Mapping[str, Any]]
) -> tuple[list[Step], bool] | None:
    if len(pre_tokenizer) != 1 or pre_tokenizer[0].get("type") != "Metaspace":
        return None
    metaspace = pre_tokenizer[0]
    scheme = metaspace.get("prepend_scheme")
    if scheme is None:  # older files
        scheme = "always" if metaspace.get("add_prefix_space", True) is True else "never"
    names = {"always": "PrependMissing", "first": "PrependFirst", "never": None}
    splits = metaspace.get("split", True)
    if (
        metaspace.get("replacement") != BLANK_SIGN
        or scheme not in names
        or not isinstance(splits, bool)
    ):
        return None
    name = names[scheme]
    return [*steps, _TO_BLANKS, *([(name, " ")] if name else [])], splits


def model_of_pieces(model: SentencePieceModel, path: PathLike) -> TokenizerModel:
    """Model of a SentencePiece BPE model with byte fallback and without a charsmap.

    That library merges any two neighbours whose union is a piece, the highest score first. So each
    way to make a piece of two others is a merge at the rank of its score.

    Raises `ModelFileError` for what cannot be honoured exactly.
    """
    normal = {piece.text: i for i, piece in enumerate(model.pieces) if piece.kind == Kind.NORMAL}
    reasons = {
        "it is no BPE": model.model_type != BPE,
        "it has no byte fallback": not model.byte_fallback,
        "its normalizer has rules (charsmap)": bool(model.charsmap),
        "it takes extra blanks away": model.remove_extra_whitespaces,
        "blanks end its words": model.whitespace_as_suffix,
        "its blanks are not escaped": not model.escape_whitespaces,
        "a symbol of the user's has a blank": any(
            piece.kind == Kind.USER_DEFINED and (" " in piece.text or BLANK_SIGN in piece.text)
            for piece in model.pieces
        ),
        "it has unused pieces": any(piece.kind == Kind.UNUSED for piece in model.pieces),
        "a piece is there twice": len(normal)
        != sum(piece.kind == Kind.NORMAL for piece in model.pieces),
    }
    reasons["several of its pieces have the same score"] = not _ties_are_runs(model, normal)
    reasons["a piece has a character that is none"] = not set().union(*normal) <= normal.keys()
    for reason, holds in reasons.items():
        if holds:
            raise ModelFileError(
                f"{path}: this SentencePiece model cannot be merged here: {reason}"
            )
    # Of equal scores, the leftmost place is merged; of runs, that is where the longest one grows.
    order = sorted(normal, key=lambda text: (-model.pieces[normal[text]].score, -len(text)))
    splits = [
        (text[:place], text[place:])
        for text in order
        for place in range(1, len(text))
        if text[:place] in normal and text[place:] in normal
    ]
    vocab = {piece.text: i for i, piece in enumerate(model.pieces)}
    added = [
        # The library looks for symbols of the user's in the normal form.
        AddedToken(piece.text, i, special=not is_users, normalized=is_users)
        for i, piece in enumerate(model.pieces)
        for is_users in [piece.kind == Kind.USER_DEFINED]
        if is_users or piece.kind in (Kind.CONTROL, Kind.UNKNOWN)
    ]
    prefix: list[Step] = [("PrependToTexts", " ")] if model.add_dummy_prefix else []
    lefts, rights = zip(*splits, strict=True) if splits else ((), ())
    try:
        return model_of_vocab(
            vocab,
            SpelledMerges(list(lefts), list(rights), lambda rank: f"{path}, merge {rank}"),
            added,
            normalizer=[*prefix, _TO_BLANKS],
            cuts_at_blanks=False,
            path=path,
        )
    except VocabularyError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _ties_are_runs(model: SentencePieceModel, normal: Mapping[str, int]) -> bool:
    """Whether merging the longest result first is merging the leftmost, where scores are equal.

    Only for runs of one character, such as blanks, which is tried for runs of many lengths.
    """
    groups: dict[float, list[str]] = {}
    for text, i in normal.items():
        if len(text) > 1:  # characters are made by no merge
            groups.setdefault(model.pieces[i].score, []).append(text)
    for texts in groups.values():
        if len(texts) > 1 and len(set("".join(texts))) > 1:
            return False
        sizes = {1, *map(len, texts)}
        if len(texts) > 1 and any(
            _merge_run(size, sizes, longest_first=True)
            != _merge_run(size, sizes, longest_first=False)
            for size in range(2, 4 * max(sizes))
        ):
            return False
    return True


def _merge_run(size: int, sizes: set[int], *, longest_first: bool) -> list[int]:
    """Lengths of what a run of characters is merged to, if a token of each of `sizes` exists."""
    parts = [1] * size
    while True:
        sums = [(left + right, -i) for i, (left, right) in enumerate(pairwise(parts))]
        found = [each for each in sums if each[0] in sizes]
        if not found:
            return parts
        total, place = max(found) if longest_first else found[0]
        parts[-place : 2 - place] = [total]


def spell_token(data: bytes, *, is_spare: bool = False) -> str:
    """A token as the vocabulary's file spells it; is_spare: whether it is one of the spare ones."""
    if len(data) == 1 and (is_spare or data >= b"\x80"):
        return f"<0x{data[0]:02X}>"
    return data.decode().replace(" ", BLANK_SIGN)


def render_character_parts(model: TokenizerModel) -> dict[str, Any]:
    """Normalizer, pre-tokenizer and decoder of tokenizer.json for such a model."""
    steps = list(model.normalizing.steps) if model.normalizing else []
    prefixes = [step[0].removesuffix("ToTexts") for step in steps if step[0].startswith("Prepend")]
    forms: list[dict[str, Any]] = [{"type": step[0]} for step in steps if step[0] in FORMS]
    cuts = model.scheme.pattern == _EACH_BLANK
    normalizers = list(forms)
    pre_tokenizer: dict[str, Any] | None = None
    if cuts or prefixes not in ([], ["Prepend"]):
        names = {"PrependMissing": "always", "PrependFirst": "first"}
        scheme = names[prefixes[0]] if prefixes else "never"
        pre_tokenizer = {
            "type": "Metaspace",
            "replacement": BLANK_SIGN,
            "prepend_scheme": scheme,
            "split": cuts,
        }
    else:
        if prefixes:
            normalizers.append({"type": "Prepend", "prepend": BLANK_SIGN})
        normalizers.append({"type": "Replace", "pattern": {"String": " "}, "content": BLANK_SIGN})
    decoders: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": BLANK_SIGN}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if prefixes:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": pre_tokenizer,
        "decoder": {"type": "Sequence", "decoders": decoders},
    }
