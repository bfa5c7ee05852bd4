"""What type checkers see in ``sharing.py``: the class whose methods it loads later."""

from syft_mpc.encoding import Encoding as Sharing

METHODS: tuple[str, ...]
__all__ = ["METHODS", "Sharing"]
