"""Files that tokenizers are kept in: one module per format, each reading and writing models."""
