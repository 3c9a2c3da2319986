"""Plain text: a file, a line or a separated part is a document."""
