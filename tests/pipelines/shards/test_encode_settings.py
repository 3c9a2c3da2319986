"""`EncodeSettings` as one record, and the type of what a manifest keeps of it."""

from __future__ import annotations

import ast
import inspect
import pickle

import pytest

from bpe.errors import SettingsError
from pipelines import EncodeSettings, ReadOptions
from schemas import sidecars


def test_a_manifests_settings_have_a_type_for_each_name() -> None:
    tree = ast.parse(inspect.getsource(sidecars))
    (kind,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == "EncodeValues"
    )
    typed = [node.target.id for node in kind.body if isinstance(node, ast.AnnAssign)]
    read = ReadOptions(nulls="empty", limit=5)
    assert typed == list(EncodeSettings("d", read).to_dict())


def test_settings_cannot_be_changed_and_travel_to_workers() -> None:
    settings = EncodeSettings("d", ReadOptions(), splits=(("a", "0.5"), ("b", "0.5")), seed=3)
    with pytest.raises(AttributeError):
        settings.seed = 4
    copy = pickle.loads(pickle.dumps(settings))
    assert copy == settings
    assert copy.digest == settings.digest
    assert EncodeSettings.from_dict(settings.to_dict(), settings.read) == settings
    with pytest.raises(SettingsError, match="--pack 0"):
        EncodeSettings("d", ReadOptions(), pack=0)
