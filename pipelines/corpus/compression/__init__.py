"""Compressed files as streams of bounded blocks."""
