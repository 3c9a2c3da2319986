"""Which backend is in force, and that both halves offer the same."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bpe
from bpe.backends import choice
from bpe.backends.choice import NATIVE_INTERFACE, get_backend
from bpe.backends.process_memory import bound_free_memory, give_back_memory
from bpe.backends.protocol import Backend, Decoder, Encoder
from bpe.errors import BackendError, SettingsError
from bpe.reference.encoding import ReferenceDecoder, ReferenceEncoder
from bpe.reference.portable_backend import PythonBackend

CACHED = (
    choice._python_backend,
    choice._native_backend,
    choice._best_backend,
)


@pytest.fixture
def without_native(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    find = importlib.import_module

    def refuse(name: str, package: str | None = None) -> Any:
        if name == "bpe.backends.native_backend":
            raise ImportError("no module named bpe._native")
        return find(name, package)

    monkeypatch.setattr(importlib, "import_module", refuse)
    for cached in CACHED:
        cached.cache_clear()
    yield
    for cached in CACHED:
        cached.cache_clear()


def public_parameters(kind: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(member).parameters)
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_backends_offer_the_same(backend: Backend) -> None:
    assert backend.name in {"python", "native"}
    assert public_parameters(type(backend)) == public_parameters(PythonBackend)
    assert public_parameters(PythonBackend) == public_parameters(Backend)


def test_the_specification_is_an_encoder() -> None:
    assert public_parameters(ReferenceEncoder) == public_parameters(Encoder)


def test_decoders_offer_the_same(backend: Backend) -> None:
    assert public_parameters(ReferenceDecoder) == public_parameters(Decoder)
    made = backend.make_decoder({0: b"a"})
    assert public_parameters(type(made)) == public_parameters(Decoder)


def test_environment_names_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BPE_BACKEND", "python")
    assert get_backend().name == "python"
    monkeypatch.setenv("BPE_BACKEND", "rust")
    with pytest.raises(SettingsError, match=r"BPE_BACKEND is 'rust': use one of auto, native"):
        get_backend()
    assert get_backend("python").name == "python"
    with pytest.raises(SettingsError, match="backend is 'c'"):
        get_backend("c")


@pytest.mark.usefixtures("without_native")
def test_native_insists() -> None:
    with pytest.raises(BackendError, match="BPE_BACKEND=python"):
        get_backend("native")


@pytest.mark.usefixtures("without_native")
def test_auto_falls_back_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BPE_BACKEND", raising=False)
    with pytest.warns(RuntimeWarning, match="using the python backend"):
        assert get_backend().name == "python"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert get_backend("auto").name == "python"
        assert get_backend().name == "python"


@pytest.mark.usefixtures("without_native")
@pytest.mark.parametrize("found", [None, NATIVE_INTERFACE + 1])
def test_a_core_of_other_sources_is_refused(
    found: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = types.ModuleType("bpe._native")
    old.__file__ = "/somewhere/_native.so"
    if found is not None:
        old.INTERFACE = found  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bpe._native", old)
    message = f"/somewhere/_native.so was compiled from other sources .its interface is {found}"
    with pytest.raises(BackendError, match=f"{message}.*pip install"):
        get_backend("native")
    monkeypatch.setenv("BPE_BACKEND", "auto")
    with pytest.warns(RuntimeWarning, match=message):
        assert get_backend().name == "python"
    choice.native_core_if_there.cache_clear()
    bound_free_memory()
    give_back_memory()
    choice.native_core_if_there.cache_clear()


def test_the_interface_has_a_new_number_when_it_changes() -> None:
    stub = Path(bpe.__file__).with_name("_native.pyi")
    text = re.sub(r'""".*?"""', "", stub.read_text(encoding="utf-8"), flags=re.DOTALL)
    digest = hashlib.sha256("".join(text.split()).encode()).hexdigest()[:16]
    # A changed digest wants a new number here, in bpe/backends/choice.py and in python_module.cc.
    assert {NATIVE_INTERFACE: digest} == {12: "533677ac825fd4ff"}
