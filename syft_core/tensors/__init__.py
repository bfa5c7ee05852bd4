"""The layer types, one per file."""
