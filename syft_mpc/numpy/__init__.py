"""Encrypted computation on numpy: kernels, and rules of its operations."""
