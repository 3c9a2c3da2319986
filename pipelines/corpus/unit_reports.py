"""What each unit of a job leaves beside its result, until a record holds the sum of all."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bpe.encoding.special_tokens import SpecialTokens
from bpe.errors import OutputError
from pipelines.corpus.rejects import Rejects
from pipelines.storage.output_files import (
    TEMPORARY,
    delete_files,
    join,
    list_files,
    read_bytes,
    remove_empty_folder,
    remove_temporary_files,
    write_atomically,
)
from pipelines.storage.record_checks import check_record

__all__ = [
    "REPORT_FOLDER",
    "UnitReport",
    "occurrences_in",
    "read_reports",
    "remove_reports",
    "write_report",
]

REPORT_FOLDER = TEMPORARY
"""Sub-folder of a count table for the reports."""

_REPORT = re.compile(r"unit-\d{5,}\.json")
_Report = TypeVar("_Report", bound=msgspec.Struct)


class UnitReport(msgspec.Struct):
    """What counting a unit brought, left as a file: nothing rests on the runner's counters.

    Attributes:
        documents_in: documents that start in the unit, rejected rows among them.
        documents: documents that end in it and were counted.
        bytes: of their text.
        occurrences: pre-tokens counted, repeats included.
        rejects, accepted: rows set aside by reason, and anomalies read all the same by name.
        special_text: how often each special token is spelled out.
    """

    documents_in: int
    documents: int
    bytes: int
    occurrences: int
    rejects: dict[str, int]
    accepted: dict[str, int]
    special_text: dict[str, int]

    @classmethod
    def start(cls) -> UnitReport:
        """The report of a unit of which nothing is counted yet."""
        return cls(0, 0, 0, 0, {}, {}, {})

    def add(self, batch: pa.RecordBatch, counts: pa.Table, specials: SpecialTokens) -> None:
        """Count a batch of pieces, the table of its words, and special tokens in its text."""
        for token, hits in specials.count(batch["text"]).items():
            self.special_text[token] = self.special_text.get(token, 0) + hits
        self.documents += pc.sum(batch["is_last"]).as_py() or 0
        self.bytes += pc.sum(pc.binary_length(batch["text"])).as_py() or 0
        self.occurrences += occurrences_in(counts)

    def write(self, directory: str, unit: int, rejects: Rejects) -> None:
        """Take over what the reader counted, and write the report of a unit."""
        self.documents_in = rejects.documents_in
        self.rejects = dict(rejects.counts)
        self.accepted = dict(rejects.accepted)
        write_report(join(directory, REPORT_FOLDER), unit, self)


def _report_name(unit: int) -> str:
    return f"unit-{unit:05d}.json"


def write_report(folder: str, unit: int, report: msgspec.Struct) -> None:
    """Leave the report of a unit in the folder of all reports.

    Raises:
        OutputError: it cannot be written.
    """
    write_atomically(folder, _report_name(unit), msgspec.json.encode(report))


def read_reports(folder: str, units: int, kind: type[_Report]) -> list[_Report]:
    """The reports of all units, in order.

    Args:
        folder: of the reports.
        units: how many there are.
        kind: what a report is.

    Raises:
        OutputError: one is missing or damaged.
    """
    names = set(list_files(folder))
    reports = []
    for index in range(units):
        path = join(folder, _report_name(index))
        if _report_name(index) not in names:
            raise OutputError(f"{path}: is missing although the job ended; run it again")
        try:
            report = msgspec.json.decode(read_bytes(path), type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise OutputError(f"{path}: is damaged ({error}); run the command again") from error
        check_record(report, path, remedy="run the command again")
        reports.append(report)
    return reports


def remove_reports(folder: str) -> None:
    """Remove the reports, once their sums are written down, and their folder if it is empty."""
    delete_files(folder, [name for name in list_files(folder) if _REPORT.fullmatch(name)])
    remove_temporary_files(folder)
    remove_empty_folder(folder)


def occurrences_in(table: pa.Table) -> int:
    """All pre-tokens of a count table, repeats included."""
    # Python's integers: the sum over all words may pass int64.
    return sum(int(pc.sum(chunk).as_py() or 0) for chunk in table["count"].chunks)
