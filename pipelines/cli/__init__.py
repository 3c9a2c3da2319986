"""The command `beam-bpe`: its parser and its commands."""
