"""The extension for reading and writing: there with a native backend, else Python does its work."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import pipelines
from bpe.errors import BackendError
from pipelines.corpus.jsonl.json_rows import scan_json_rows
from pipelines.corpus.text_checks import find_byte
from pipelines.storage import native_io
from pipelines.storage.file_writing import start_writing

CACHED = (native_io._load, native_io._warn)


@pytest.fixture(params=[None, native_io.IO_INTERFACE + 1])
def old_extension(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An extension of other sources in place of ours; the message that refuses it."""
    pytest.importorskip("bpe._native", reason="the native core is not built")
    old = types.ModuleType("pipelines._io")
    old.__file__ = "/somewhere/_io.so"
    if request.param is not None:
        old.INTERFACE = request.param  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pipelines._io", old)
    for cached in CACHED:
        cached.cache_clear()
    yield f"/somewhere/_io.so was compiled from other sources .its interface is {request.param}"
    for cached in CACHED:
        cached.cache_clear()


def test_the_extension_is_there_where_the_backend_is_native(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extension = pytest.importorskip("pipelines._io")
    monkeypatch.setenv("BPE_BACKEND", "native")
    assert native_io.native_io() is extension
    monkeypatch.setenv("BPE_BACKEND", "python")
    assert native_io.native_io() is None
    assert native_io.native_io_if_there() is extension


def test_it_brings_the_core_whose_pages_it_takes() -> None:
    pytest.importorskip("pipelines._io")
    code = "import pipelines._io, sys; assert 'bpe._native' in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_it_python_reads_with_one_warning(
    old_extension: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPE_BACKEND", "auto")
    with pytest.warns(RuntimeWarning, match=f"{old_extension}.*Python reads the same slowly"):
        assert find_byte(b"abca", ord("a")).tolist() == [0, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ends = find_byte(b'{"text":"a"}\n', ord("\n"))
        assert scan_json_rows(b'{"text":"a"}\n', ends - ends, ends, text=["text"]) is None
    start_writing(-1, 0, 1)


def test_native_insists_on_it(old_extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BPE_BACKEND", "native")
    with pytest.raises(BackendError, match=f"{old_extension}.*pip install.*BPE_BACKEND=python"):
        find_byte(b"abca", ord("a"))


def test_the_interface_has_a_new_number_when_it_changes() -> None:
    stub = Path(pipelines.__file__).with_name("_io.pyi")
    text = re.sub(r'""".*?"""', "", stub.read_text(encoding="utf-8"), flags=re.DOTALL)
    digest = hashlib.sha256("".join(text.split()).encode()).hexdigest()[:16]
    # A changed digest wants a new number here, in native_io.py and in python_module.cc.
    assert {native_io.IO_INTERFACE: digest} == {1: "16a2d0864f34adc1"}
