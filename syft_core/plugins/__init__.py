"""Discover and load backends and other plugins."""
