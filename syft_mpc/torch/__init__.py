"""Encrypted computation on torch: kernels, rules of its operations, methods of modules."""
