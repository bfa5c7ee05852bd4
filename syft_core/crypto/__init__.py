"""Computation on encrypted values: additive secret shares and the protocols on them."""
