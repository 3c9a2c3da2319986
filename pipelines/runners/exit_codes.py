"""What the command's exit codes mean."""

from __future__ import annotations

__all__ = ["DONE", "ERROR", "EXIT_CODES", "EXIT_CODES_NOTE", "INTERRUPTED", "USAGE"]

DONE, ERROR, USAGE, INTERRUPTED = 0, 1, 2, 130

EXIT_CODES = {
    DONE: "done, also when nobody reads what is printed",
    ERROR: "error, in one message on stderr",
    USAGE: "a command line that cannot be read, nothing was read or written",
    INTERRUPTED: "interrupted, the same command resumes",
}

EXIT_CODES_NOTE = "Exit codes: " + "; ".join(f"{n} {text}" for n, text in EXIT_CODES.items()) + "."
