"""What a command notes on stderr about the tokenizer that it was given."""

from __future__ import annotations

import time

from bpe.engines.library import OWN_ENGINES
from bpe.engines.library_model import LibraryModel
from bpe.formats.framing import framing_of
from bpe.tokenizer import Tokenizer
from pipelines.cli.standard_streams import note
from pipelines.runners.progress import format_bytes

__all__ = ["tell_engine", "tell_framing", "tell_lossy"]

_SHOWN_TOKENS = 5
_TRIAL_SECONDS = 0.1
_TRIAL_TEXTS = [
    "The quick brown fox jumps over the lazy dog, 12 times; Straße, мир, 世界. " * 20
] * 8


def tell_lossy(tokenizer: Tokenizer, special_text: str = "text") -> None:
    """Note that ids of a tokenizer do not give back every text as it was.

    Args:
        tokenizer: of the run.
        special_text: of the run.
    """
    if tokenizer.normalizer is not None:
        note(
            f"note: the tokenizer normalizes text ({tokenizer.normalizer}): decoding gives the "
            "normal form, not always the bytes of the input"
        )
    if tokenizer.scheme.drops_text:
        note(
            "note: the tokenizer's pre-tokenizer drops some of the text, such as white space: "
            "decoding does not give it back"
        )
    lossy = tokenizer.model.lossy_tokens(special_text)
    if lossy:
        names = ", ".join(repr(token.text) for token in lossy[:_SHOWN_TOKENS])
        more = " and others" if len(lossy) > _SHOWN_TOKENS else ""
        note(
            f"note: tokens of this vocabulary take the white space next to them ({names}{more}): "
            "decoding does not give it back"
        )


def tell_engine(tokenizer: Tokenizer) -> None:
    """Note that another library encodes, how fast it is here, and whether it caches words.

    Args:
        tokenizer: of the run.
    """
    model = tokenizer.model
    if not isinstance(model, LibraryModel) or model.engine in OWN_ENGINES:
        return
    start, size = time.perf_counter(), 0
    while time.perf_counter() < start + _TRIAL_SECONDS:
        size += sum(map(len, _TRIAL_TEXTS))
        model.library.encode(_TRIAL_TEXTS, specials=False, threads=1)
    rate = format_bytes(int(size / (time.perf_counter() - start)))
    how = "each distinct word once" if model.library.words_apart else "document by document"
    note(
        f"note: {model.engine} {model.library.version} encodes ({model.kind}), {how}: about "
        f"{rate}/s on one core"
    )


def tell_framing(tokenizer: Tokenizer, bos: int | None, eos: int | None) -> None:
    """Note what the tokenizer's file would put around each text, unless it is put there.

    Args:
        tokenizer: of the run.
        bos: put before each document.
        eos: put after each document.
    """
    before, after = framing_of(tokenizer.model.post_processor)
    if (before, after) == ([] if bos is None else [bos], [] if eos is None else [eos]):
        return
    sides = [
        (ids, side, option)
        for ids, side, option in (
            (before, "before", "--prepend-bos"),
            (after, "after", "--append-eos"),
        )
        if ids
    ]
    if not sides:
        return
    texts = {token.id: token.text for token in tokenizer.added_tokens}

    def show(ids: list[int]) -> str:
        return " ".join(repr(texts[i]) if i in texts else str(i) for i in ids)

    said = " and ".join(f"{show(ids)} {side}" for ids, side, _ in sides)
    options = " ".join(f"{option}={show(ids)}" for ids, _, option in sides if len(ids) == 1)
    does = f"; {options} does so" if options else "; no option here puts several tokens there"
    note(f"note: by the tokenizer's file, each text has {said}, which is not done unasked{does}")
