"""The layers of a chain, one type per file."""
