"""Encodes texts with another library; runs in that library's own environment.

    python run_peer.py PEER REQUEST.json ANSWER.json

REQUEST has `files` (name to tokenizer.json, each in a folder of its own) and `texts`. ANSWER gets
the peer's `version` and `ids`: of each name a list with the ids of each text, or with what the
peer said instead; a text in place of the list where the file does not load.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

Encode = Callable[[str], Sequence[int]]


def load_tokenizers(path: str) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def load_gigatoken(path: str) -> Encode:
    from gigatoken import Tokenizer

    tokenizer = Tokenizer(path)
    return lambda text: tokenizer.encode(text).tolist()


def load_fastokens(path: str) -> Encode:
    from fastokens import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def load_transformers(path: str) -> Encode:
    from transformers import AutoTokenizer

    folder = Path(path).parent
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]


LOADERS = {
    "tokenizers": load_tokenizers,
    "gigatoken": load_gigatoken,
    "fastokens": load_fastokens,
    "transformers": load_transformers,
}


def attempt(encode: Encode, text: str) -> list[int] | str:
    try:
        return [int(token_id) for token_id in encode(text)]
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        return f"{type(error).__name__}: {error}"


def encode_all(peer: str, path: str, texts: list[str]) -> list[list[int] | str] | str:
    try:
        encode = LOADERS[peer](path)
    except BaseException as error:  # noqa: BLE001 - as above
        return f"{type(error).__name__}: {error}"
    return [attempt(encode, text) for text in texts]


def main() -> None:
    peer, request_path, answer_path = sys.argv[1:]
    request = json.loads(Path(request_path).read_text())
    found = {
        name: encode_all(peer, path, request["texts"]) for name, path in request["files"].items()
    }
    Path(answer_path).write_text(json.dumps({"version": version(peer), "ids": found}))


if __name__ == "__main__":
    main()
