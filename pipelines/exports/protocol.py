"""What every export format has in common: its options, its checks before work, its one job."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from bpe.errors import SettingsError
from pipelines.exports.documents import DocumentLengths
from pipelines.exports.export_folder import ExportFolder
from pipelines.exports.shard_source import ShardSource
from pipelines.storage.wording import counted
from schemas.export_record import ExportedSide

__all__ = ["Export", "ExportOptions", "Written", "longest_document"]


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of single formats, None where not given; `pipelines.cli.arguments` explains them."""

    dtype: str | None = None
    name: str | None = None
    val_fraction: float | None = None
    tokens_per_file: int | None = None
    block_size: int | None = None


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an export holds.

    Attributes:
        documents: documents in it; where documents are cut into blocks, those of the source.
        tokens: in it, with the marks.
        left_out: what of the source is not in it, counted by name.
        sides: training and validation, where documents are held out.
    """

    documents: int
    tokens: int
    left_out: dict[str, int] = field(default_factory=dict)
    sides: dict[str, ExportedSide] = field(default_factory=dict)


class Export(ABC):
    """One target format.

    Args:
        options: of the command line.

    Attributes:
        title: of the format, for messages.
        takes: names of the options that it honours.
        dtypes: integer types that the format can hold, in order of preference: the first one that
            holds every id of the shards' column type is used unless `--dtype` names another.
        file_names: a pattern of all names that the export gives to files.
        keeps_documents: whether a reader of the format sees where documents end without a
            separator token.
        takes_packed_rows: whether rows of packed shards go into the target as they are, with their
            padding; else their segments are joined to documents again.
        has_validation: whether the target has a place for documents that are held out.

    Raises:
        SettingsError: an option that the format does not honour, or not with that value.
    """

    title: ClassVar[str]
    takes: ClassVar[frozenset[str]] = frozenset()
    dtypes: ClassVar[tuple[str, ...]] = ("uint16", "uint32")
    file_names: ClassVar[re.Pattern[str]]
    keeps_documents: ClassVar[bool] = True
    takes_packed_rows: ClassVar[bool] = False
    has_validation: ClassVar[bool] = False

    def __init__(self, options: ExportOptions) -> None:
        for name, value in vars(options).items():
            if value is not None and name not in self.takes:
                raise SettingsError(
                    f"--{name.replace('_', '-')} {value}: {self.title} has no use for it; leave it "
                    "out"
                )
        if options.dtype is not None and options.dtype not in self.dtypes:
            raise SettingsError(
                f"--dtype {options.dtype}: {self.title} can hold {', '.join(self.dtypes)}"
            )
        self.options = options

    def check(self, source: ShardSource) -> None:
        """Refuse what the target cannot hold, before work.

        Raises:
            SettingsError: names the shard, the value, and what to do instead.
        """
        if not source.tokens:
            raise SettingsError(
                f"{source.directory}: there are no tokens in its "
                f"{counted(source.documents, 'document')}, and {self.title} cannot be empty; "
                "nothing can be exported"
            )
        self.check_ids(source)
        if source.row_ids is None:
            return
        if not self.takes_packed_rows:
            source.check_joinable(self.title)
        elif source.bos is not None or source.eos is not None:
            raise SettingsError(
                f"--append-eos and --prepend-bos: {self.title} takes the packed rows of "
                f"{source.directory} as they are, {source.row_ids} ids each; give the option to "
                "encode"
            )

    @abstractmethod
    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write all files, and leave it to the caller to publish them.

        Raises:
            OutputError: a shard cannot be read, or a file cannot be written.
        """

    def dtype(self, source: ShardSource) -> np.dtype[Any]:
        """The integer type in the target's files."""
        if self.options.dtype is not None:
            return np.dtype(self.options.dtype)
        fitting = [np.dtype(name) for name in self.dtypes if np.can_cast(source.dtype, name)]
        return fitting[0] if fitting else np.dtype(self.dtypes[-1])

    def check_ids(self, source: ShardSource) -> None:
        """Refuse ids that the integer type cannot hold.

        Raises:
            SettingsError: names the shard that holds the largest id.
        """
        dtype = self.dtype(source)
        if source.largest > np.iinfo(dtype).max:
            wider = [name for name in self.dtypes if source.largest <= np.iinfo(name).max]
            remedy = f"--dtype {wider[0]} holds them" if wider else "megatron, npy and hf hold them"
            raise SettingsError(
                f"{source.largest_place}: the id {source.largest} is over {np.iinfo(dtype).max}, "
                f"the largest that {self.title} can hold as {dtype.name}; {remedy}"
            )


def longest_document(source: ShardSource, bound: int) -> int:
    """Ids of the longest document, with the marks; not looked for while all are below `bound`.

    Args:
        source: the shards.
        bound: a number of ids; if all documents together have fewer, 0 is returned at once.
    """
    if source.tokens < bound:
        return 0
    documents = DocumentLengths()
    return max(
        int(documents.add(lengths, ends).max(initial=0)) for lengths, ends in source.lengths()
    )
