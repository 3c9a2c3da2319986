"""The input: listing, the plan, the readers of each format, and bad records."""
