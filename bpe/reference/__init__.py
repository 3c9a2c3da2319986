"""The specification in plain Python, and the portable backend made of it."""
