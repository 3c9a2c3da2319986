"""Training a tokenizer: counting, the trainer, and exact merge rounds."""
