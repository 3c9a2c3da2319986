"""A Beam pipeline of your own: from JSON Lines to a tokenizer and to shards of token ids.

    python examples/own_pipeline.py CORPUS OUTPUT [TEXT_FIELD]

CORPUS is a folder of JSON Lines, TEXT_FIELD the field with the text (`text`; dots for nested ones).
OUTPUT/tokenizer gets a model directory for each vocabulary size, OUTPUT/tokens the shards, which
`beam-bpe verify` and `pipelines.TokenShards` accept. Run the script again after an interruption: it
trains again, and encodes only the units that are missing.

Two runs into one folder at once are refused: `EncodeRun` holds the folder's lock.
"""

from __future__ import annotations

import sys

# Before Beam, which then does not warn of missing Google Cloud clients.
from pipelines import (
    CountWords,
    EncodeDocuments,
    EncodeRun,
    EncodeSettings,
    ReadOptions,
    TrainBpe,
    TrainSettings,
    list_inputs,
    make_plan,
)

import apache_beam as beam  # isort: skip

from bpe import Tokenizer

SIZES = (300, 350)


def train_and_encode(corpus: str, output: str, text_field: str) -> None:
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

    # Encode: what an interrupted run has left is kept, and an output gets its manifest at the end.
    tokenizer = Tokenizer.load(f"{output}/tokenizer/{max(SIZES)}")
    encoding = EncodeSettings(tokenizer.digest, read)
    with (
        EncodeRun(f"{output}/tokens", encoding, plan, tokenizer) as run,
        beam.Pipeline() as pipeline,
    ):
        pipeline | run.units() | EncodeDocuments(run)
    totals = run.manifest.totals
    print(totals.documents, "documents,", totals.tokens, "tokens")


def main() -> None:
    """Run with the folders that the command line names."""
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: python examples/own_pipeline.py CORPUS OUTPUT [TEXT_FIELD]")
    corpus, output, *field = sys.argv[1:]
    train_and_encode(corpus, output, field[0] if field else "text")


if __name__ == "__main__":
    main()
