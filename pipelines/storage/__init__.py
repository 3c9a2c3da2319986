"""Where results lie: file systems, atomic writes, run folders, locks, and records."""
