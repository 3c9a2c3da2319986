"""Token shards in the formats that other trainers read: one module per format."""

from pipelines.exports.datatrove import DatatroveExport
from pipelines.exports.hf_dataset import HfDatasetExport
from pipelines.exports.litdata import LitdataExport
from pipelines.exports.llmc import LlmcExport
from pipelines.exports.mds import MdsExport
from pipelines.exports.megatron import MegatronExport
from pipelines.exports.nanogpt import NanogptExport
from pipelines.exports.npy import NpyExport
from pipelines.exports.protocol import Export, ExportOptions, Written
from pipelines.exports.shard_source import ShardSource

__all__ = ["EXPORTS", "Export", "ExportOptions", "ShardSource", "Written"]

EXPORTS: dict[str, type[Export]] = {
    "hf": HfDatasetExport,
    "megatron": MegatronExport,
    "nanogpt": NanogptExport,
    "llmc": LlmcExport,
    "datatrove": DatatroveExport,
    "mds": MdsExport,
    "litdata": LitdataExport,
    "npy": NpyExport,
}
"""By the name that `--to` gives them."""
