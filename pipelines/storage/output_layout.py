"""Names of the files in an output of `beam-bpe encode`.

    shard-UUUUU-PPP.arrow          shards; with splits, in a folder per split
    __beam-bpe__/manifest.json     written last
    __beam-bpe__/run.json          settings and inputs, written first
    __beam-bpe__/tokenizer/        a copy of the tokenizer
    __beam-bpe__/sidecars/         a record per shard; with splits, in a folder per split
    __beam-bpe__/rejects/          rows that were skipped
    __beam-bpe__/units/            records of units that a global shuffle read
    __beam-bpe__/shuffle/          its spills, while it works

Whoever reads a whole folder gets shards alone: pyarrow skips names that start with `_`, `datasets`
skips folders that start with `__`, and globs such as `**/*.arrow` match nothing else.
"""

from __future__ import annotations

__all__ = [
    "ENCODE_RUN",
    "MANIFEST",
    "OLD_FILES",
    "OLD_MANIFEST",
    "OLD_TOKENIZER",
    "OWN_FOLDER",
    "REJECTS",
    "REJECTS_FOLDER",
    "RUN",
    "SIDECARS",
    "SPILL_FOLDER",
    "TOKENIZER_FOLDER",
    "UNIT_FOLDER",
    "sidecar_of",
]

OWN_FOLDER = "__beam-bpe__"
"""Folder for everything that is not a shard."""

RUN = "run.json"
"""Record of a run of `train` or `export`, in its output; of `encode` in versions before 4."""

ENCODE_RUN = f"{OWN_FOLDER}/{RUN}"
MANIFEST = f"{OWN_FOLDER}/manifest.json"
TOKENIZER_FOLDER = f"{OWN_FOLDER}/tokenizer"
SIDECARS = f"{OWN_FOLDER}/sidecars"
REJECTS_FOLDER = "rejects"
"""Folder of the lists of skipped rows; of `encode` in `OWN_FOLDER`."""
REJECTS = f"{OWN_FOLDER}/{REJECTS_FOLDER}"
UNIT_FOLDER = f"{OWN_FOLDER}/units"
SPILL_FOLDER = f"{OWN_FOLDER}/shuffle"

# Where manifests of version 3 and earlier have these.
OLD_MANIFEST = "manifest.json"
OLD_TOKENIZER = "tokenizer"
OLD_FILES = {
    "": r"shard-\d{5,}-\d{3,}\.arrow\.json",
    "rejects": r"unit-\d{5,}\.jsonl",
    "units": r"unit-\d{5,}\.json",
    "_shuffle": r"unit-\d{5,}\.arrow",
}
"""Other files of such an output: patterns of names, by folder."""


def sidecar_of(shard: str) -> str:
    """Name of a shard's sidecar: 'train/shard-00003-000.arrow' -> its record in `SIDECARS`."""
    return f"{SIDECARS}/{shard}.json"
