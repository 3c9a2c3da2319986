"""Check that documents are where an output says: their files, ids, units, and buckets.

A document's `source` and `byte_start` say where it was read. Its id, its unit and its bucket follow
from these two, and are compared with them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe.errors import BpeError
from pipelines.corpus.document_keys import shuffle_keys
from pipelines.corpus.listing.file_formats import TABLE_FORMATS, classify
from pipelines.encoding.shuffle_buckets import bucket_of
from pipelines.shards.encode_settings import EncodeSettings
from pipelines.verify.document_parts import DocumentParts, refuse
from pipelines.verify.verify_documents import DocumentOrder
from pipelines.verify.verify_ranges import NO_END, size_of
from schemas.sidecars import Manifest, ShardSidecar

__all__ = ["InputPlaces", "has_tables"]

_Ints = npt.NDArray[np.int64]
_GENERATED_ID = r"^(?P<file>\d{1,9}):(?P<start>\d{1,18})$"


def has_tables(manifest: Manifest, input_format: str) -> bool:
    """Whether rows of some input files have numbers for places, and not bytes."""
    return any(_is_table(file["path"], input_format) for file in manifest.inputs)


def _is_table(path: str, input_format: str) -> bool:
    try:
        return classify(path, input_format)[0] in TABLE_FORMATS
    except BpeError:
        # Of what cannot be told, nothing is compared.
        return True


class InputPlaces:
    """Follows the documents of an output, shard after shard in the manifest's order.

    Args:
        manifest: of the output.
        settings: of the run.
    """

    def __init__(self, manifest: Manifest, settings: EncodeSettings) -> None:
        self._settings = settings
        self._files = list(manifest.inputs)
        self._paths = [file["path"] for file in manifest.inputs]
        self._numbers = {path: number for number, path in enumerate(self._paths)}
        self._buckets = 1 + max(shard.unit for shard in manifest.shards)
        self._folder: str | None = None
        self._unit = -1
        self._split = self._path = ""
        self._ranges: dict[int, tuple[int, int]] = {}
        # Where `--limit` leaves documents out; a place, not a byte, of tables too.
        self._stops: dict[int, int] = {}
        self._sources: dict[str, tuple[int, int, int]] = {}
        self._orders: dict[str, DocumentOrder] = {}

    def begin(self, sidecar: ShardSidecar) -> None:
        """A shard begins.

        Raises:
            OutputError: a document of the unit before lacks a part.
        """
        self._split = sidecar.split
        if sidecar.unit == self._unit:
            return
        self.close()
        self._unit = sidecar.unit
        self._sources = {}
        self._ranges = {}
        self._stops = {}
        for each in sidecar.inputs:
            number = self._numbers[str(each["path"])]
            end = NO_END if each["end"] is None else int(each["end"])
            self._ranges[number] = (int(each["start"] or 0), end)
            self._stops[number] = int(each.get("stop") or NO_END)

    def close(self) -> None:
        """The unit ends.

        Raises:
            OutputError: as for `begin`.
        """
        for order in self._orders.values():
            order.close(self._path)
        self._orders = {}

    def add(self, parts: DocumentParts) -> _Ints:
        """Check the next rows of the shard; returns the number of each row's file.

        Raises:
            OutputError: a row is not where it says; the unit's last rows are for `begin`.
        """
        self._path = parts.path
        codes = parts.sources.indices.to_numpy()
        table = np.zeros((len(parts.sources.dictionary), 3), np.int64)
        for code in np.unique(codes).tolist():
            name = parts.sources.dictionary[code].as_py()
            found = self._source(name)
            if found is None:
                at = int(np.argmax(codes == code))
                raise parts.failure(at, f"is from {name!r}, which is no input of its unit")
            table[code] = found
        files: _Ints
        files, lows, highs = table[codes].T
        refuse(
            (parts.starts < lows) | (parts.is_first & (parts.starts >= highs)),
            lambda at: parts.failure(
                at,
                f"begins at {parts.starts[at]} of {parts.sources[at]}, which its unit does not "
                "read",
            ),
        )
        origins = self._check_ids(parts, files)
        order = self._orders.setdefault(self._split, DocumentOrder(self._settings, self._is_open))
        order.add(parts, files, origins, self._keys(parts, files))
        return files

    def _source(self, name: str) -> tuple[int, int, int] | None:
        """Number of the file, and the range of it in which a document of the unit may start."""
        if name not in self._sources:
            number = self._find(name)
            if number is None:
                return None
            low, high = 0, NO_END
            if self._settings.shuffle != "global":
                if number not in self._ranges:
                    return None
                low, high = self._limits(number)
                high = min(high, self._stops[number])
            self._sources[name] = (number, low, high)
        return self._sources[name]

    def _limits(self, number: int) -> tuple[int, int]:
        low, high = self._ranges[number]
        if _is_table(self._paths[number], self._settings.read.input_format):
            # Places there are rows, and ranges are bytes.
            return 0, NO_END
        size = size_of(self._files[number])
        # A document without text may stand at the end of its file.
        return low, high + 1 if high in (low, size) else high

    def _find(self, name: str) -> int | None:
        """Number of the input file with a source; the first one settles their shared folder."""
        if self._folder is not None:
            return self._numbers.get(self._folder + name)
        for path in self._paths:
            folder = path.removesuffix(name)
            is_folder = folder == "" or folder.endswith("/")
            if name and path.endswith(name) and is_folder and self._all_below(folder):
                self._folder = folder
                return self._numbers[path]
        return None

    def _all_below(self, folder: str) -> bool:
        return all(path.startswith(folder) for path in self._paths)

    def _is_open(self, number: int) -> tuple[bool, bool]:
        """Whether documents of a file may begin before the unit, and end after it."""
        low, high = self._ranges.get(number, (0, NO_END))
        return low > 0, high not in (NO_END, size_of(self._files[number]))

    def _check_ids(self, parts: DocumentParts, files: _Ints) -> _Ints:
        """Ids that are made of file and place; returns where each row's document starts."""
        found = pc.extract_regex(parts.names, _GENERATED_ID)
        is_made = found.is_valid().to_numpy(zero_copy_only=False)
        said = [
            pc.fill_null(pc.struct_field(found, name), "0").cast(pa.int64()).to_numpy()
            for name in ("file", "start")
        ]
        is_made &= (said[0] == files) & np.where(
            parts.is_first, said[1] == parts.starts, said[1] <= parts.starts
        )
        if self._settings.read.id_field is None:
            texts = [pa.array(column).cast(pa.string()) for column in said]
            spelled = pc.binary_join_element_wise(*texts, ":")
            is_made &= pc.equal(spelled, parts.names).to_numpy(zero_copy_only=False)
            refuse(
                ~is_made,
                lambda at: parts.failure(
                    at,
                    f"has the id {parts.names[at].as_py()!r}, and stands at {parts.starts[at]} of "
                    f"file {files[at]}",
                ),
            )
        origins: _Ints = np.where(is_made, said[1], parts.starts)
        return origins

    def _keys(self, parts: DocumentParts, files: _Ints) -> npt.NDArray[np.uint64]:
        """In a shuffle, the keys of documents that begin, which belong into this bucket."""
        if self._settings.shuffle == "none":
            return np.zeros(0, np.uint64)
        first = np.flatnonzero(parts.is_first)
        keys = shuffle_keys(files[first], parts.starts[first], self._settings.seed)
        if self._settings.shuffle == "global":
            what = f"belongs into another bucket than {self._unit}"
            refuse(
                bucket_of(keys, self._buckets) != self._unit,
                lambda at: parts.failure(int(first[at]), what),
            )
        return keys
