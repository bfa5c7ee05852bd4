"""Pointers: local handles for objects on other workers."""
