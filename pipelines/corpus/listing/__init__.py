"""Which files are read, and what each of them is."""
