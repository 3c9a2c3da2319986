"""Arrow schemas of everything that crosses a pipeline stage or a disk, each with a version."""
