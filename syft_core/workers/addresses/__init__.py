"""Addresses: how parties reach each other, and on whose behalf."""
