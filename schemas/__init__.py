"""Arrow schemas of everything that crosses a pipeline stage or a disk, each with a version."""

from schemas.count_manifest import BucketFile, CountManifest, CountTotals
from schemas.documents import DOCUMENT_PIECES
from schemas.encoded_batches import encoded_batch_schema
from schemas.packed_shards import packed_shard_schema
from schemas.pair_counts import (
    BOUNDARY_FIXES,
    BOUNDARY_RECORDS,
    PAIR_COUNTS,
    RANKED_PAIRS,
    SEGMENTS,
)
from schemas.round_records import (
    MERGES,
    CountRecord,
    InitialRecord,
    RoundSummary,
    SegmentsRecord,
)
from schemas.round_state import StateFile, round_state_schema
from schemas.run_record import RunRecord
from schemas.shuffle_spills import shuffle_spill_schema
from schemas.sidecars import (
    Manifest,
    OutputTotals,
    PackingTotals,
    ShardSidecar,
    SplitTotals,
    Spread,
    UnitRecord,
    UnitTotals,
)
from schemas.token_shards import token_shard_schema, token_type
from schemas.versions import check_version, with_version
from schemas.word_counts import word_counts_schema

__all__ = [
    "BOUNDARY_FIXES",
    "BOUNDARY_RECORDS",
    "DOCUMENT_PIECES",
    "MERGES",
    "PAIR_COUNTS",
    "RANKED_PAIRS",
    "SEGMENTS",
    "BucketFile",
    "CountManifest",
    "CountRecord",
    "CountTotals",
    "InitialRecord",
    "Manifest",
    "OutputTotals",
    "PackingTotals",
    "RoundSummary",
    "RunRecord",
    "SegmentsRecord",
    "ShardSidecar",
    "SplitTotals",
    "Spread",
    "StateFile",
    "UnitRecord",
    "UnitTotals",
    "check_version",
    "encoded_batch_schema",
    "packed_shard_schema",
    "round_state_schema",
    "shuffle_spill_schema",
    "token_shard_schema",
    "token_type",
    "with_version",
    "word_counts_schema",
]
