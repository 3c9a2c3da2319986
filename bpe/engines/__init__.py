"""Tokenizers of other kinds than byte-level BPE, encoded by the library that is their reference."""
