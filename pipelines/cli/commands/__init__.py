"""One module per command of `beam-bpe`: its arguments and what it does with them."""
