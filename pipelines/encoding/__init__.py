"""Encoding a corpus: ids, packed rows, shuffles, splits, and resumed runs."""
