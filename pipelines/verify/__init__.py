"""Checks of a finished output."""
