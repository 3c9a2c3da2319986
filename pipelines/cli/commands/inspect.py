"""`beam-bpe inspect`: what a tokenizer holds, and how it cuts a text."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from bpe.tokenizer import Tokenizer
from pipelines.cli.commands.load_tokenizer import load_given_tokenizer
from pipelines.storage.wording import counted

__all__ = ["run"]


def run(arguments: Namespace) -> int:
    """Run the command; see `pipelines.cli.arguments` for the options."""
    tokenizer = load_given_tokenizer(arguments)
    if arguments.text is not None:
        _print_pieces(tokenizer, arguments.text, arguments.special_text)
    elif arguments.id is not None:
        _print_token(tokenizer, arguments.id)
    elif arguments.find is not None or arguments.all:
        _print_tokens(tokenizer, os.fsencode(arguments.find or ""))
    else:
        _print_overview(tokenizer, arguments.count)
    return 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _show(data: bytes, *, in_hex: bool = False) -> str:
    """Bytes as text where they are text, else as escapes; or all of them as <20><74>."""
    if in_hex:
        return "".join(f"<{byte:02x}>" for byte in data)
    try:
        return repr(data.decode())
    except UnicodeDecodeError:
        return repr(data)


def _is_feste(tokenizer: Tokenizer) -> bool:
    """Whether tokens are shown as Feste shows them."""
    settings = tokenizer.training.get("settings")
    return isinstance(settings, dict) and settings.get("preset") == "feste"


def _print_pieces(tokenizer: Tokenizer, text: str, special_text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    ids = tokenizer.encode(data, special_text=special_text)
    listed = f": {' '.join(map(str, ids.tolist()))}" if len(ids) else ""
    _print(f"{counted(len(ids), 'token')}{listed}")
    in_hex = _is_feste(tokenizer)
    for token_id in ids.tolist():
        _print(f"{token_id:>8}  {_show(tokenizer.token_bytes(token_id), in_hex=in_hex)}")


def _print_tokens(tokenizer: Tokenizer, part: bytes) -> None:
    """Every token that contains some bytes, by id."""
    in_hex = _is_feste(tokenizer)
    for token_id, data in sorted(tokenizer.model.all_tokens.items()):
        if part in data:
            _print(f"{token_id:>8}  {_show(data, in_hex=in_hex)}")


def _print_token(tokenizer: Tokenizer, token_id: int) -> None:
    """One token: its bytes, what it is, and the merges that make it."""
    data, in_hex = tokenizer.token_bytes(token_id), _is_feste(tokenizer)
    _print(f"{token_id:>8}  {_show(data, in_hex=in_hex)}  {counted(len(data), 'byte')}")
    for token in tokenizer.added_tokens:
        if token.id == token_id:
            _print(f"{'special' if token.special else 'added'} token")
    tokens = tokenizer.model.tokens
    for rank, (left, right, made) in enumerate(tokenizer.model.merges):
        if made == token_id:
            parts = (_show(tokens[each], in_hex=in_hex) for each in (left, right))
            _print(f"merge of rank {rank:,}: {left} + {right}, {' + '.join(parts)}")


def _print_overview(tokenizer: Tokenizer, count: int) -> None:
    specials = ", ".join(f"{text!r} = {each}" for text, each in tokenizer.special_tokens.items())
    bytes_as = tokenizer.model.byte_preset
    if bytes_as is None:
        _print(f"pre-tokenizer    {tokenizer.scheme.name}")
        _print(f"tie order        {tokenizer.tie_order or 'not known (imported)'}")
    else:
        _print(f"bytes            numbered as {bytes_as} has them; nothing is merged")
    _print(
        f"vocabulary       {counted(tokenizer.vocab_size, 'entry', 'entries')}, largest id "
        f"{tokenizer.max_id:,}"
    )
    _print(f"special tokens   {specials or 'none'}")
    _print(f"digest           {tokenizer.digest}")
    others = [token for token in tokenizer.added_tokens if not token.special]
    if others:
        shown = ", ".join(f"{token.text!r} = {token.id}" for token in others)
        _print(f"added tokens     {shown}")
    if tokenizer.normalizer is not None:
        _print(f"normalizer       {tokenizer.normalizer}: decoding gives the normal form")
    if bytes_as is not None:
        return
    model = tokenizer.model
    in_hex = _is_feste(tokenizer)

    def show(data: bytes) -> str:
        return _show(data, in_hex=in_hex)

    _print("first merge" if count == 1 else f"first {count} merges")
    for left, right, new in model.merges[:count]:
        parts = f"{show(model.tokens[left])} + {show(model.tokens[right])}"
        _print(f"{new:>8}  {parts} = {show(model.tokens[new])}")
    _print("longest token" if count == 1 else f"longest {count} tokens")
    longest = sorted(model.tokens.items(), key=lambda item: (-len(item[1]), item[0]))
    for token_id, data in longest[:count]:
        _print(f"{token_id:>8}  {counted(len(data), 'byte')}  {show(data)}")
