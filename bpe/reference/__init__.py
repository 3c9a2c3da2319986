"""`naive`: the specification, in two short functions; the portable backend, in plain Python too."""
