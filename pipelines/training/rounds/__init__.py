"""Exact training in merge rounds: sharded state on storage, two Beam jobs a round."""
