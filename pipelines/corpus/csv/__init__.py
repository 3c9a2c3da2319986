"""Delimiter-separated text."""
