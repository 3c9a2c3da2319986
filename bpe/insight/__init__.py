"""What a vocabulary does to a corpus: figures over counts of tokens."""
