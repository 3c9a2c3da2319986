"""nanoGPT: bare uint16 ids in `train.bin`, and in `val.bin` if documents are held out."""

from __future__ import annotations

import re

import numpy as np

from bpe.errors import SettingsError
from pipelines.exports.export_folder import ExportFolder
from pipelines.exports.protocol import Export, Written
from pipelines.exports.shard_source import ShardSource
from pipelines.exports.validation_split import check_held_out, held_out_of

__all__ = ["NanogptExport"]


class NanogptExport(Export):
    """Writes the rows of each side as they come."""

    title = "nanoGPT's train.bin"
    takes = frozenset({"val_fraction"})
    dtypes = ("uint16",)
    file_names = re.compile(r"(train|val)\.bin")
    keeps_documents = False
    has_validation = True

    def check(self, source: ShardSource) -> None:
        """Refuse what does not fit; see the base class."""
        super().check(source)
        check_held_out(source, self.options.val_fraction)

    def write(self, source: ShardSource, folder: ExportFolder) -> Written:
        """Write one file, or two."""
        fraction = self.options.val_fraction
        held_out = held_out_of(source, fraction)
        train = folder.create("train.bin")
        val = folder.create("val.bin") if held_out is not None else None
        for batch in source.batches():
            if held_out is None or val is None:
                train.write_array(batch.ids, np.uint16)
                continue
            chosen = held_out.divide(batch)
            val.write_array(batch.ids[chosen], np.uint16)
            train.write_array(batch.ids[~chosen], np.uint16)
        for file in (train, val):
            if file is not None:
                file.close()
                if not file.size:
                    raise SettingsError(
                        f"{source.directory}: {file.name} would be empty, since its documents are; "
                        "hold out another part of them, or none"
                    )
        sides = held_out.sides(source) if held_out is not None else {}
        return Written(documents=source.documents, tokens=source.tokens, sides=sides)
