"""Differential privacy: PATE, its analysis, and votes that stay secret (docs/pate.md)."""
