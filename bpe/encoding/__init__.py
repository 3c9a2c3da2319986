"""Documents to ids and back: one tokenizer, its added tokens, and streams."""
