"""Ledgers without their workers: the file, its entries, and how they are shown."""
