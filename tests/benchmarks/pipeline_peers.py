"""What others have for turning JSON Lines into token ids on storage; `bench_pipeline` starts them.

    PYTHON tests/benchmarks/pipeline_peers.py NAME --corpus FOLDER --tokenizer tokenizer.json
        --output FOLDER [--workers 2] [--count]

Runs one peer, in an environment that has it; with `--count` prints the ids that it left instead.
Each writes the ids of all documents, without marks at their ends where it can do without, in the
widths and with the speed-ups that it offers for that, and works on so many cores:

    datatrove   LocalPipelineExecutor, JsonlReader to DocumentTokenizer, as many tasks as workers
    datasets    load_dataset("json") and `map`, in batches, with tokenizers; Arrow files of uint16
    dolma       the command `dolma tokens`; it strips white space around texts, so that ids are
                fewer, and puts a mark after each document, not counted here
    gigatoken   its reader of JSON Lines; the ids are in memory as a whole, then written as uint16

This file needs nothing but the peer, so that any environment can run it. datatrove, datasets and
gigatoken come with the extra `bench`. dolma wants other versions of numpy and tokenizers:

    python3.11 -m venv DOLMA
    DOLMA/bin/pip install dolma==1.2.1 aiobotocore==2.5.4 boto3==1.28.17
    python tests/benchmarks/bench_pipeline.py --peers --peer-python DOLMA/bin/python

(Without the two versions after it, pip tries hundreds of them for many minutes.)
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

VOCABULARY = Path(__file__).resolve().parents[1] / "data" / "vocab"
END_OF_TEXT = 50256
FOREIGN_WIDTH = 2  # bytes of an id in the files of datatrove, dolma and gigatoken


def write_tokenizer(path: Path) -> None:
    """GPT-2's `tokenizer.json`, as Hugging Face publishes it, from OpenAI's own files."""
    vocabulary = json.loads((VOCABULARY / "encoder.json").read_text(encoding="utf-8"))
    lines = (VOCABULARY / "vocab.bpe").read_text(encoding="utf-8").split("\n")
    # As strings, not as pairs: dolma's older tokenizers reads no others.
    merges = [line for line in lines[1:] if line]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    special = {"id": END_OF_TEXT, "content": "<|endoftext|>", "special": True}
    special |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    model: dict[str, Any] = {"type": "BPE", "vocab": vocabulary, "merges": merges}
    written = {
        "version": "1.0",
        "added_tokens": [special],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": model,
    }
    path.write_text(json.dumps(written), encoding="utf-8")


def run_datatrove(options: argparse.Namespace) -> None:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    reader = JsonlReader(str(options.corpus))
    # Shuffling, which is its default, takes another pass.
    tokenizer = DocumentTokenizer(
        str(options.output / "tokens"), str(options.tokenizer), shuffle_documents=False
    )
    LocalPipelineExecutor(
        pipeline=[reader, tokenizer],
        tasks=options.workers,
        workers=options.workers,
        logging_dir=str(options.output / "logs"),
    ).run()


def count_datatrove(output: Path) -> int:
    return sum(file.stat().st_size for file in output.glob("tokens/*.ds")) // FOREIGN_WIDTH


def run_datasets(options: argparse.Namespace) -> None:
    from datasets import Dataset, Features, List, Value, load_dataset
    from tokenizers import Tokenizer

    files = [str(file) for file in sorted(options.corpus.iterdir())]
    cache = str(options.output / "cache")
    rows = load_dataset(
        "json", data_files=files, split="train", num_proc=options.workers, cache_dir=cache
    )
    assert isinstance(rows, Dataset)
    encoder = Tokenizer.from_file(str(options.tokenizer))

    def encode(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        return {"input_ids": [found.ids for found in encoder.encode_batch_fast(batch["text"])]}

    rows.map(
        encode,
        batched=True,
        num_proc=options.workers,
        remove_columns=rows.column_names,
        features=Features({"input_ids": List(Value("uint16"))}),
        cache_file_name=str(options.output / "tokens.arrow"),
        new_fingerprint="tokens",
    )


def count_datasets(output: Path) -> int:
    import pyarrow as pa

    found = 0
    for path in output.glob("tokens*.arrow"):
        with pa.memory_map(str(path)) as file:
            found += sum(len(batch["input_ids"].flatten()) for batch in pa.ipc.open_stream(file))
    return found


def run_dolma(options: argparse.Namespace) -> None:
    command = [str(Path(sys.executable).parent / "dolma"), "tokens"]
    command += ["--documents", f"{options.corpus}/*.jsonl"]
    command += ["--destination", str(options.output / "tokens"), "--dtype", "uint16"]
    command += ["--tokenizer.name_or_path", str(options.tokenizer), "--fields.id_field_type", "int"]
    command += ["--tokenizer.eos_token_id", str(END_OF_TEXT), "--processes", str(options.workers)]
    subprocess.run(command, check=True)


def count_dolma(output: Path) -> int:
    import numpy as np

    files = output.glob("tokens/*.npy")
    return sum(int((np.fromfile(file, np.uint16) != END_OF_TEXT).sum()) for file in files)


def run_gigatoken(options: argparse.Namespace) -> None:
    import awkward as ak
    import gigatoken
    import numpy as np

    tokenizer = gigatoken.Tokenizer(options.tokenizer)
    source = gigatoken.JsonlFileSource(sorted(options.corpus.iterdir()), "text")
    ids = tokenizer.encode_files(source, parallel=options.workers > 1)
    np.asarray(ak.flatten(ids)).astype(np.uint16).tofile(options.output / "tokens.bin")
    np.asarray(ak.num(ids)).tofile(options.output / "lengths.bin")


def count_gigatoken(output: Path) -> int:
    return (output / "tokens.bin").stat().st_size // FOREIGN_WIDTH


PEERS: dict[str, tuple[Callable[[argparse.Namespace], None], Callable[[Path], int]]] = {
    "datatrove": (run_datatrove, count_datatrove),
    "datasets": (run_datasets, count_datasets),
    "dolma": (run_dolma, count_dolma),
    "gigatoken": (run_gigatoken, count_gigatoken),
}


def find_version(name: str, interpreters: list[str]) -> tuple[str, str] | None:
    """The first of some interpreters that has a peer, and the version there; None if none has."""
    code = f"from importlib.metadata import version; print(version({name!r}))"
    for interpreter in interpreters:
        command = [interpreter, "-c", code]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return interpreter, found.stdout.strip()
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=PEERS)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    run, count = PEERS[options.name]
    if options.count:
        print(count(options.output))
        return
    options.output.mkdir(parents=True, exist_ok=True)
    # Processes share out the cores; the one peer with threads takes as many as there are workers.
    threads = options.workers if options.name == "gigatoken" else 1
    os.environ |= {"RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(options.output / "home")}
    run(options)


if __name__ == "__main__":
    main()
