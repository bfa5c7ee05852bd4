"""Running: the stages of an operation, one file for each."""
