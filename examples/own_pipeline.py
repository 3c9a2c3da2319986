"""A Beam pipeline of your own: from JSON Lines to a tokenizer and to shards of token ids.

    python examples/own_pipeline.py CORPUS OUTPUT [TEXT_FIELD]

CORPUS is a folder of JSON Lines, TEXT_FIELD the field with the text (`text`; dots for nested ones).
OUTPUT/tokenizer gets a model directory for each vocabulary size, OUTPUT/tokens the shards, which
`beam-bpe verify` and `pipelines.TokenShards` accept. Run the script again after an interruption: it
trains again, and encodes only the units that are missing.

Several runs into one folder at once need a lock, as the command line takes it: call
`pipelines.storage.output_files.prepare_output`, then encode inside
`pipelines.storage.output_lock.locked_output`.
"""

from __future__ import annotations

import sys

# Before Beam, which then does not warn of missing Google Cloud clients.
from pipelines import (
    CountWords,
    EncodeDocuments,
    EncodeSettings,
    ReadOptions,
    TrainBpe,
    TrainSettings,
    begin_run,
    code_version,
    find_finished_units,
    list_inputs,
    make_plan,
    remove_stale_files,
    save_copy,
    write_manifest,
)

import apache_beam as beam  # isort: skip

from bpe import Tokenizer, get_backend

SIZES = (300, 350)


def run(corpus: str, output: str, text_field: str) -> None:
    """Train on the corpus, then encode it with the larger vocabulary."""
    # Plan: which bytes of which files make a unit of work.
    read = ReadOptions(text_field=text_field)
    inputs = list_inputs([corpus], read)
    plan = make_plan(inputs, read)

    # Train: one model directory for each vocabulary size.
    training = TrainSettings(SIZES, pretokenizer="gpt2")
    with beam.Pipeline() as pipeline:
        (
            pipeline
            | beam.Create([unit.to_json().encode() for unit in plan.units])
            | CountWords(training.counting, read)
            | TrainBpe(f"{output}/tokenizer", training)
        )

    # Encode: mark the folder, put the tokenizer there, make the units that are missing.
    model, tokens = f"{output}/tokenizer/{max(SIZES)}", f"{output}/tokens"
    tokenizer = Tokenizer.load(model)
    encoding = EncodeSettings(tokenizer.digest, read)
    begin_run(tokens, encoding, plan, overwrite=False)
    save_copy(tokenizer, model, f"{tokens}/__beam-bpe__/tokenizer")
    kept = find_finished_units(tokens, encoding, plan)
    remove_stale_files(tokens, kept)
    missing = [unit for unit in plan.units if unit.index not in kept]
    with beam.Pipeline() as pipeline:
        (
            pipeline
            | beam.Create([unit.to_json().encode() for unit in missing])
            | EncodeDocuments(tokens, encoding)
        )

    # Finish: add up the sidecars of all shards; without a manifest an output is unfinished.
    manifest = write_manifest(
        tokens,
        encoding,
        plan,
        code_version=code_version(),
        backend=get_backend().name,
        listing=inputs.counts,
    )
    print(manifest.totals.documents, "documents,", manifest.totals.tokens, "tokens")


def main() -> None:
    """Run with the folders that the command line names."""
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python examples/own_pipeline.py CORPUS OUTPUT [TEXT_FIELD]")
    corpus, output, *field = sys.argv[1:]
    run(corpus, output, field[0] if field else "text")


if __name__ == "__main__":
    main()
