"""Differential privacy: PATE, its analysis, and votes that nobody sees (docs/pate.md)."""
