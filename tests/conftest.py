"""Fixtures that every test folder shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import settings

from bpe.backends.choice import get_backend
from bpe.backends.protocol import Backend
from bpe.errors import BackendError

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
SHARED = HERE.parent.parent / "shared" / "data"

# How long an example takes says nothing of the code where others use the machine too. The rest is
# what Hypothesis chose, which in CI is a profile of its own.
settings.register_profile("without deadline", settings.default, deadline=None)
settings.load_profile("without deadline")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """What only repeats a proof is slow too, and every worker begins with the slow tests."""
    cases: Counter[str] = Counter()
    for item in items:
        if any(item.get_closest_marker(name) for name in ("exhaustive", "peers")):
            item.add_marker("slow")
        if mark := item.get_closest_marker("one_in"):
            test = item.nodeid.partition("[")[0]
            if cases[test] % mark.args[0]:
                item.add_marker("slow")
            cases[test] += 1
    yield
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    items[:] = _slow_tests_first(items, workers)


def _slow_tests_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Tests in parts of equal size, as workers get them, each with its share of slow ones ahead.

    A slow test that came last would have the other workers wait for it.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = iter([item for item in items if not item.get_closest_marker("slow")])
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        share = slow[worker::workers]
        size = (len(items) - len(ordered)) // (workers - worker)
        ordered += [*share, *islice(quick, max(0, size - len(share)))]
    return [*ordered, *quick]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of small files that ship with the tests."""
    return DATA


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of large corpora beside the checkout; skips loudly where it is missing."""
    if not SHARED.is_dir():
        pytest.skip(f"large test corpora are not here: no folder {SHARED}")
    return SHARED


@pytest.fixture(params=["python", "native"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """Runs the test once on each implementation; `BPE_BACKEND` names the one in force."""
    name = str(request.param)
    try:
        chosen = get_backend(name)
    except BackendError as error:
        pytest.skip(f"backend {name!r} is not built: {error}")
    monkeypatch.setenv("BPE_BACKEND", name)
    return chosen
