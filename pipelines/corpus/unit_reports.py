"""What each unit of a job leaves beside its result, until a record holds the sum of all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bpe.encoding.special_tokens import SpecialTokens
from bpe.errors import OutputError
from pipelines.corpus.rejects import Rejects, rejected_rows
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
from schemas.round_state import StateFile
from schemas.sidecars import OutputTotals

__all__ = [
    "REPORT_FOLDER",
    "UnitReport",
    "check_balance",
    "occurrences_in",
    "read_reports",
    "remove_reports",
]

REPORT_FOLDER = TEMPORARY
"""Sub-folder of a count table for the reports."""

_REPORT = re.compile(r"unit-\d{5,}\.json")


class UnitReport(msgspec.Struct):
    """What reading a unit brought, left as a file: nothing rests on the runner's counters.

    Attributes:
        documents_in: documents that start in the unit, rejected rows among them.
        documents: documents that end in it and were not rejected.
        bytes: of their text.
        kept_bytes: of text in the sample, without special tokens that cut documents.
        occurrences: pre-tokens counted, repeats included.
        rejects, accepted: rows set aside by reason, and anomalies read all the same by name.
        special_text: how often each special token is spelled out.
        files: shards of the state that were made, in order.
    """

    documents_in: int
    documents: int
    bytes: int
    kept_bytes: int
    occurrences: int
    rejects: dict[str, int]
    accepted: dict[str, int]
    special_text: dict[str, int]
    files: list[StateFile]

    @classmethod
    def start(cls) -> UnitReport:
        """The report of a unit of which nothing is read yet."""
        return cls(0, 0, 0, 0, 0, {}, {}, {}, [])

    @classmethod
    def sum(cls, reports: Iterable[UnitReport]) -> UnitReport:
        """All reports added up, with sorted names, and the files of all in order."""
        total = cls.start()
        for each in reports:
            total.documents_in += each.documents_in
            total.documents += each.documents
            total.bytes += each.bytes
            total.kept_bytes += each.kept_bytes
            total.occurrences += each.occurrences
            total.files += each.files
            total.rejects = _add(total.rejects, each.rejects)
            total.accepted = _add(total.accepted, each.accepted)
            total.special_text = _add(total.special_text, each.special_text)
        return total

    @property
    def rejected(self) -> int:
        """How many rows were set aside."""
        return rejected_rows(self.rejects)

    @property
    def dropped(self) -> int:
        """How many empty documents were left out."""
        return self.accepted.get("dropped_empty", 0)

    def add(self, batch: pa.RecordBatch, specials: SpecialTokens) -> None:
        """Count a batch of pieces, and special tokens in its text."""
        self.special_text = _add(self.special_text, specials.count(batch["text"]))
        self.documents += pc.sum(batch["is_last"]).as_py() or 0
        self.bytes += pc.sum(pc.binary_length(batch["text"])).as_py() or 0

    def take(self, rejects: Rejects) -> None:
        """Add what the reader of a unit counted."""
        self.documents_in += rejects.documents_in
        self.rejects = _add(self.rejects, rejects.counts)
        self.accepted = _add(self.accepted, rejects.accepted)

    def write(self, folder: str, unit: int) -> None:
        """Leave the report of a unit in the folder of all reports.

        Raises:
            OutputError: it cannot be written.
        """
        write_atomically(folder, _report_name(unit), msgspec.json.encode(self))


def _add(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    total = Counter(left)
    total.update(right)
    return dict(sorted(total.items()))


def check_balance(
    place: str, totals: UnitReport | OutputTotals, *, went: str, result: str, cut: int = 0
) -> None:
    """Check that every document read went into the result, among the rejects, or was left out.

    Documents that start in one unit may end in another: only the sums have to agree.

    Args:
        place: the folder, for the message.
        totals: of all units.
        went: where documents went, as in "were counted".
        result: what not to use, as in "these counts".
        cut: documents that were left out with incomplete rows.

    Raises:
        OutputError: documents were lost or made up.
    """
    read, written = totals.documents_in, totals.documents
    if read != written + totals.rejected + totals.dropped + cut:
        tail = f", {cut} cut off with incomplete rows" if cut else ""
        raise OutputError(
            f"{place}: {read} documents were read, but {written} {went}, {totals.rejected} are "
            f"among the rejects and {totals.dropped} dropped as empty{tail}; this is a fault of "
            f"beam-bpe: do not use {result}"
        )


def _report_name(unit: int) -> str:
    return f"unit-{unit:05d}.json"


def read_reports(folder: str, units: int) -> list[UnitReport]:
    """The reports of all units, in order.

    Args:
        folder: of the reports.
        units: how many there are.

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
            report = msgspec.json.decode(read_bytes(path), type=UnitReport)
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
