"""How backends and other extensions come in."""
