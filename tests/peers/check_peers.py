"""Loads exported tokenizer.json files in other libraries and compares their ids with ours.

    python tests/peers/check_peers.py [--environments FOLDER] [PEER ...]

Makes a virtual environment for each peer in FOLDER (default: a folder of the system's for
temporary files) and installs the peer there with pip; what is there already is used again. Prints
what each peer gives, and fails on a difference that `KNOWN` does not name.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import gzip
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from bpe import Tokenizer, get_scheme
from bpe.encoding.tokenizer_model import TokenizerModel
from bpe.formats.gpt2_files import read_gpt2_files
from bpe.formats.tiktoken_ranks import read_tiktoken_ranks

DATA = Path(__file__).resolve().parents[1] / "data"
# Environment to the module that is asked and what pip installs.
PEERS = {
    "tokenizers-0.22": ("tokenizers", ["tokenizers==0.22.*"]),
    "tokenizers-0.23": ("tokenizers", ["tokenizers==0.23.*"]),
    "tokenizers-1.0": ("tokenizers", ["tokenizers==1.0.0rc3"]),
    "gigatoken": ("gigatoken", ["gigatoken==0.10.0"]),
    "fastokens": ("fastokens", ["fastokens==0.3.5"]),
    "transformers": ("transformers", ["transformers>=5"]),
}
EXPORTS = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "none")
# What a peer gets wrong itself: (peer, export) to the names of inputs, or "all", and the reason.
_SECOND_CONTRACTION = (
    {"long_s_contraction"},
    "after a contraction with a long s its scanner takes another one; tiktoken does not",
)
KNOWN: dict[tuple[str, str], tuple[set[str] | str, str]] = {
    ("gigatoken", "none"): ("all", "it splits text where use_regex is false too"),
    ("tokenizers-1.0", "o200k"): _SECOND_CONTRACTION,
    ("fastokens", "o200k"): _SECOND_CONTRACTION,
}


def make_exports(folder: Path) -> dict[str, Tokenizer]:
    """Tokenizers by the name of their scheme, each exported to FOLDER/name/tokenizer.json."""
    vocab = DATA / "vocab"
    models = {
        "gpt2": read_gpt2_files(
            vocab / "encoder.json", vocab / "vocab.bpe", scheme=get_scheme("gpt2")
        )
    }
    for name in ("cl100k", "o200k"):
        path = folder / f"{name}.tiktoken"
        path.write_bytes(gzip.decompress((vocab / f"{name}_base.tiktoken.gz").read_bytes()))
        models[name] = read_tiktoken_ranks(path, pretokenizer=name, special_tokens={})
    for name in ("llama3", "qwen2", "none"):
        models[name] = dataclasses.replace(models["cl100k"], scheme=get_scheme(name))
    return {name: export(models[name], folder / name) for name in EXPORTS}


def export(model: TokenizerModel, folder: Path) -> Tokenizer:
    folder.mkdir()
    tokenizer = Tokenizer(model)
    tokenizer.to_huggingface(folder / "tokenizer.json")
    return tokenizer


def nasty_texts() -> dict[str, str]:
    """The valid nasty inputs by name, and some that are about the ends of patterns."""
    lines = (DATA / "cases" / "nasty_inputs.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["valid_utf8"]]
    texts = {row["name"]: base64.b64decode(row["b64"]).decode() for row in rows}
    return texts | {
        "newline_and_space_at_the_end": "a\n ",
        "newlines_and_spaces_at_the_end": "th\r\n\n  \n \t",
        "space_and_no_break_space_at_the_end": "a \u00a0\u3000",
        "long_s_contraction": " 's'S\x0b/B\t\u00a0B'\u017f'SB\u02b0",
        "contractions": "it's IT'S 'Ll we'VE 'x '",
    }


def make_environment(folder: Path, requirements: list[str]) -> Path:
    """Python of an environment that has the requirements."""
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*command, *requirements], check=True)
        (folder / "done").touch()
    return python


def ask(python: Path, module: str, folder: Path, texts: dict[str, str]) -> dict[str, Any]:
    """The answer of `run_peer.py`."""
    files = {name: str(folder / name / "tokenizer.json") for name in EXPORTS}
    request, answer = folder / "request.json", folder / "answer.json"
    request.write_text(json.dumps({"files": files, "texts": list(texts.values())}))
    script = Path(__file__).with_name("run_peer.py")
    subprocess.run([python, script, module, request, answer], check=True)
    answered: dict[str, Any] = json.loads(answer.read_text())
    return answered


def differences(
    found: list[Any] | str, tokenizer: Tokenizer, texts: dict[str, str]
) -> dict[str, object]:
    """Names of the texts with other ids, and what the peer gave; "all" for a refused file."""
    if isinstance(found, str):
        return {"all": found}
    return {
        name: ids
        for (name, text), ids in zip(texts.items(), found, strict=True)
        if ids != tokenizer.encode(text, special_text="allow").tolist()
    }


def check_peer(
    peer: str, python: Path, folder: Path, tokenizers: dict[str, Tokenizer]
) -> list[str]:
    """Print what a peer gives; the differences that are not known."""
    texts = nasty_texts()
    answer = ask(python, PEERS[peer][0], folder, texts)
    unknown = []
    for name in EXPORTS:
        wrong = differences(answer["ids"][name], tokenizers[name], texts)
        known, reason = KNOWN.get((peer, name), (set(), ""))
        new = {} if known == "all" else {text: wrong[text] for text in wrong if text not in known}
        told = (
            f"{len(wrong)} of {len(texts)} differ ({reason or sorted(new)})" if wrong else "equal"
        )
        print(f"{peer} {answer['version']}  {name}: {told}")
        unknown += [f"{peer} {name} {text}: {str(ids)[:300]}" for text, ids in new.items()]
    return unknown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path)
    parser.add_argument("peers", nargs="*", metavar="PEER", default=list(PEERS))
    arguments = parser.parse_args()
    environments = arguments.environments or Path(tempfile.gettempdir()) / "beam-bpe-peers"
    unknown = []
    with tempfile.TemporaryDirectory() as folder:
        tokenizers = make_exports(Path(folder))
        for peer in arguments.peers:
            python = make_environment(environments / peer, PEERS[peer][1])
            unknown += check_peer(peer, python, Path(folder), tokenizers)
    if unknown:
        sys.exit("\n".join(unknown))


if __name__ == "__main__":
    main()
