"""Exact training in merge rounds over sharded sequences of tokens."""
