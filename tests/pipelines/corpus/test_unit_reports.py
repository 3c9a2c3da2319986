"""Reports of units: their sum, and the balance of documents."""

from __future__ import annotations

import pytest

from bpe.errors import OutputError
from pipelines.corpus.unit_reports import UnitReport, check_balance


def report(**values: object) -> UnitReport:
    made = UnitReport.start()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def test_a_sum_adds_names_in_order_and_changes_no_report() -> None:
    first = report(documents_in=2, documents=1, bytes=5, rejects={"b": 1}, special_text={"x": 0})
    second = report(documents_in=1, occurrences=2**63 - 1, rejects={"b": 2, "a": 1}, kept_bytes=3)
    total = UnitReport.sum([first, second, second])
    assert (total.documents_in, total.documents, total.bytes, total.kept_bytes) == (4, 1, 5, 6)
    assert total.occurrences == 2 * (2**63 - 1)
    assert list(total.rejects.items()) == [("a", 2), ("b", 5)]
    assert total.special_text == {"x": 0}
    assert first.rejects == {"b": 1}


@pytest.mark.parametrize(("documents", "cut", "fits"), [(5, 0, True), (4, 1, True), (5, 1, False)])
def test_what_came_in_must_come_out(documents: int, cut: int, *, fits: bool) -> None:
    total = report(
        documents_in=10,
        documents=documents,
        rejects={"bad_json": 3, "bad_file": 1},
        accepted={"dropped_empty": 2, "nul": 7},
    )
    if fits:
        check_balance("here", total, went="were kept", result="this training", cut=cut)
        return
    with pytest.raises(OutputError) as error:
        check_balance("here", total, went="were kept", result="this training", cut=cut)
    assert str(error.value) == (
        "here: 10 documents were read, but 5 were kept, 3 are among the rejects and 2 dropped as "
        "empty, 1 cut off with incomplete rows; this is a fault of beam-bpe: do not use this "
        "training"
    )
