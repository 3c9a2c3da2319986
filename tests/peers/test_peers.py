"""Other libraries load our exports and give our ids; see check_peers.py."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.peers.check_peers import EXPORTS, PEERS, check_peer, make_environment, make_exports

# Slow too, for those who choose marks of their own.
pytestmark = [pytest.mark.peers, pytest.mark.slow]


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_gives_our_ids(peer: str, tmp_path: Path) -> None:
    default = Path(tempfile.gettempdir()) / "beam-bpe-peers"
    folder = Path(os.environ.get("BPE_PEER_ENVIRONMENTS", default))
    try:
        python = make_environment(folder / peer, PEERS[peer][1])
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no environment for {peer} can be made: {error}")
    tokenizers = make_exports(tmp_path)
    assert set(tokenizers) == set(EXPORTS)
    assert check_peer(peer, python, tmp_path, tokenizers) == []
