"""What becomes of bad rows and files: the policy, the record of them, and counts of anomalies.

`--max-bad-records` is checked twice: by `Rejects` for the rows of one unit, which stops a hopeless
run early, and by `check_rejects` for the rows of all units, before a manifest says that they are
complete. Workers do not know of each other, so a run may read on for a while after the limit.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from typing import IO

from bpe.errors import BadFileError, BadRecordError
from pipelines.corpus.listing.inputs import InputFile
from pipelines.corpus.plan import FileRange, Unit
from pipelines.corpus.read_options import NULL_TEXT, ReadOptions
from pipelines.storage.output_files import join, write_atomically
from pipelines.storage.output_layout import REJECTS_FOLDER
from pipelines.storage.output_names import rejects_name
from pipelines.storage.system_limits import refuse_limit
from pipelines.storage.wording import counted

__all__ = ["BAD_FILE", "BAD_PART", "RAW_BYTES_KEPT", "Rejects", "check_rejects", "rejected_rows"]

BAD_FILE = "bad_file"
BAD_PART = "bad_part"
# Of a bad row's bytes, so many go into the record.
RAW_BYTES_KEPT = 64 << 10
_NULL_REMEDY = (
    "set nulls aside with --nulls=skip (all bad rows with --on-bad-record=skip), or take them as "
    "empty documents with --nulls=empty"
)
# Records beyond this wait in a temporary file, not in memory.
_SPOOLED_BYTES = 8 << 20


class Rejects:
    """Takes the bad rows and files of one unit and does with them what the options say.

    Args:
        unit: the unit being read; names the file of rejects.
        options: the policies: `on_bad_record`, `on_bad_file`, `max_bad_records` and `nulls`.

    Attributes:
        counts: rows set aside, by reason, and files under `bad_file`: each once, in the unit that
            reads its start. Of damaged parts of files, the rows under `bad_part`.
        accepted: anomalies that are read all the same, by name; see `pipelines.anomalies`.
        documents_in: documents that started so far: those handed on, dropped as empty, or set
            aside as rows. Rows inside files that are set aside are not among them.
    """

    def __init__(self, unit: Unit, options: ReadOptions) -> None:
        self.unit = unit
        self.counts: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.documents_in = 0
        self._options = options
        self._records: IO[bytes] = tempfile.SpooledTemporaryFile(  # noqa: SIM115  lives as long
            max_size=_SPOOLED_BYTES
        )

    @property
    def rejected_records(self) -> int:
        """Rows set aside, of all reasons, those in damaged parts too; files are not counted."""
        return rejected_rows(self.counts)

    def bad_record(
        self,
        file: InputFile,
        *,
        reason: str,
        message: str,
        byte_offset: int | None,
        row: int | None,
        raw: bytes | memoryview,
        raw_bytes: int | None = None,
    ) -> None:
        """Set a row aside, or stop.

        Args:
            file: where it stands.
            reason: a short name to count by, such as `bad_json`.
            message: what is wrong and how to mend it.
            byte_offset: of the row's start, uncompressed; None in Parquet and Arrow files.
            row: number of the row in the file, from 1; None if not known.
            raw: the row's bytes, or the first of them; of a row in columns, its text.
            raw_bytes: how many bytes the row has, if `raw` is only their beginning.

        Raises:
            BadRecordError: the policy is `fail`, or this is one row too many.
        """
        places = [
            f"{name} {place}"
            for name, place in (("row", row), ("byte", byte_offset))
            if place is not None
        ]
        text = f"{file.path}: {', '.join(places)}: {message}"
        is_null = reason == NULL_TEXT
        if (self._options.null_policy if is_null else self._options.on_bad_record) == "fail":
            remedy = _NULL_REMEDY if is_null else "set such rows aside with --on-bad-record=skip"
            raise BadRecordError(f"{text}; or {remedy}")
        self.counts[reason] += 1
        self.documents_in += 1
        size = len(raw) if raw_bytes is None else raw_bytes
        self._add(file, reason, message, row=row, byte_offset=byte_offset, raw=raw, raw_bytes=size)
        self._stop_at_limit(f"the last one is {text}")

    def bad_part(self, file: InputFile, error: BadFileError, *, first_row: int, rows: int) -> None:
        """Set a part of a file aside: a row group of Parquet, or a record batch of Arrow.

        Args:
            file: that holds it.
            error: what is wrong with it.
            first_row: of the part, from 0.
            rows: how many it has, by the file's metadata.

        Raises:
            BadRecordError: these are too many rows.
            LimitError: it is not the file; see `system_limits`.
        """
        refuse_limit(error)
        self.counts[BAD_PART] += rows
        self.documents_in += rows
        self._add(file, BAD_PART, str(error), row=first_row + 1, rows=rows)
        self._stop_at_limit(f"{rows} of them in a damaged part: {error}")

    def bad_file(self, range_: FileRange, error: BadFileError) -> None:
        """Set a file aside, or stop.

        Args:
            range_: what was to be read of it. All ranges of a bad file come here; the first one
                stands for the file.
            error: what is wrong with it.

        Raises:
            BadFileError: the policy is `fail`.
            BadRecordError: with the bad rows, this is one too many.
            LimitError: it is not the file; see `system_limits`.
        """
        refuse_limit(error)
        if self._options.on_bad_file == "fail":
            raise BadFileError(f"{error}; or leave it out with --on-bad-file=skip") from error
        if range_.start == 0:
            self.counts[BAD_FILE] += 1
            self._add(range_.file, BAD_FILE, str(error), byte_offset=0)
            self._stop_at_limit(f"the last one is {error}")

    def to_jsonl(self) -> bytes:
        """What was set aside, a JSON object a line, in the order met; empty if there is nothing.

        Fields: file, source, row (from 1, or null), byte_offset (or null), reason, message,
        raw_base64 (at most `RAW_BYTES_KEPT` bytes of the row, or of its text where rows lie in
        columns) and raw_bytes (how many it has). Of a damaged part, row is its first, and one more
        field, rows, says how many it has.
        """
        self._records.seek(0)
        return self._records.read()

    def write(self, directory: str, folder: str = REJECTS_FOLDER) -> str | None:
        """Write the unit's list into a folder below `directory`, at once or not at all.

        Returns:
            The name below `directory`; None, and no file, if nothing was set aside.

        Raises:
            OutputError: the file cannot be written.
        """
        if not self.counts:
            return None
        name = rejects_name(self.unit.index, folder)
        write_atomically(directory, name, self.to_jsonl())
        return name

    def _stop_at_limit(self, last: str) -> None:
        limit = self._options.max_bad_records
        if limit is not None and _bad(self.counts, self._options) > limit:
            raise BadRecordError(
                f"more than --max-bad-records={limit} allows in the whole run: unit "
                f"{self.unit.index} alone has {_set_aside(self.counts)}; {last}"
            )

    def _add(
        self,
        file: InputFile,
        reason: str,
        message: str,
        *,
        row: int | None = None,
        byte_offset: int | None = None,
        raw: bytes | memoryview = b"",
        raw_bytes: int = 0,
        **others: int,
    ) -> None:
        record = {
            "file": file.path,
            "source": file.source,
            "row": row,
            "byte_offset": byte_offset,
            "reason": reason,
            "message": message,
            "raw_base64": base64.b64encode(raw[:RAW_BYTES_KEPT]).decode("ascii"),
            "raw_bytes": raw_bytes,
            **others,
        }
        self._records.seek(0, 2)
        self._records.write(json.dumps(record).encode("ascii") + b"\n")


def rejected_rows(counts: Mapping[str, int]) -> int:
    """Rows among what was set aside, those in damaged parts too; files are not counted."""
    return sum(counts.values()) - counts.get(BAD_FILE, 0)


def check_rejects(
    counts: Mapping[str, int],
    options: ReadOptions,
    directory: str,
    *,
    left: int,
    purpose: str = "train on",
    folder: str = REJECTS_FOLDER,
) -> None:
    """Check how many rows, and files, all units together have set aside.

    Args:
        counts: by reason, of all units.
        options: `max_bad_records` and `nulls`.
        directory: the output, for the message.
        left: documents that were neither set aside nor dropped as empty.
        purpose: of the run, for the message.
        folder: of the units' lists below the output.

    Raises:
        BadFileError: nothing is left.
        BadRecordError: there are more than allowed.
    """
    if counts and not left:
        raise BadFileError(
            f"nothing is left to {purpose}: all of the input was set aside, {_set_aside(counts)}; "
            f"{join(directory, folder)} lists it with what is wrong; mend it, or give another "
            "--input"
        )
    limit = options.max_bad_records
    if limit is not None and _bad(counts, options) > limit:
        raise BadRecordError(
            f"{_set_aside(counts)}, more than --max-bad-records={limit}; "
            f"{join(directory, folder)} lists them; mend them, or raise the limit and run the "
            f"command again"
        )


def _bad(counts: Mapping[str, int], options: ReadOptions) -> int:
    """Rows and files that count as bad: nulls that are to be skipped do not."""
    nulls = counts.get(NULL_TEXT, 0) if options.nulls == "skip" else 0
    return sum(counts.values()) - nulls


def _set_aside(counts: Mapping[str, int]) -> str:
    """How many rows and files, and why."""
    rows, files = rejected_rows(counts), counts.get(BAD_FILE, 0)
    parts = [counted(rows, "bad row")] if rows or not files else []
    parts += [counted(files, "bad file")] if files else []
    reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(counts.items()))
    return f"{' and '.join(parts)} ({reasons})"
