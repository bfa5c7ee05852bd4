"""Seeing: who may see what, and the records of what was seen."""
