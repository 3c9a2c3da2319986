"""Arrow schemas of everything that crosses a pipeline stage or a disk, each with a version."""

from schemas.documents import DOCUMENT_PIECES
from schemas.pair_counts import BOUNDARY_FIXES, BOUNDARY_RECORDS, PAIR_COUNTS, SEGMENTS
from schemas.records import check_record, decode_record, encode_record
from schemas.round_records import MERGES, ROUND_RECORD
from schemas.sidecars import MANIFEST, SHARD_SIDECAR
from schemas.token_shards import token_shard_schema, token_type
from schemas.versions import check_version, with_version
from schemas.word_counts import word_counts_schema

__all__ = [
    "BOUNDARY_FIXES",
    "BOUNDARY_RECORDS",
    "DOCUMENT_PIECES",
    "MANIFEST",
    "MERGES",
    "PAIR_COUNTS",
    "ROUND_RECORD",
    "SEGMENTS",
    "SHARD_SIDECAR",
    "check_record",
    "check_version",
    "decode_record",
    "encode_record",
    "token_shard_schema",
    "token_type",
    "with_version",
    "word_counts_schema",
]
