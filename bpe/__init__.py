"""Exact byte-level BPE: training, tokenizers and their file formats."""

from __future__ import annotations
