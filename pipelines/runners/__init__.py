"""Running a pipeline on each engine: options, workers, progress, metrics."""
