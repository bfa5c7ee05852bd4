"""Sums of results of several workers, which each worker checks for itself: only the sum leaves (docs/aggregates.md)."""
