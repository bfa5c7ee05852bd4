"""Sharing: the tensor methods of encrypted computation, which load it when they are first called.

Their signatures are those of ``encoding.py``, which type checkers see (``sharing.pyi``).
"""

from __future__ import annotations

from syft_core.features import Later

METHODS = (
    *("fix_precision", "fix_prec", "fix_precision_", "fix_prec_"),
    *("float_precision", "float_prec", "float_precision_", "float_prec_"),
    *("share", "share_", "encrypt", "decrypt", "reconstruct", "refresh", "_syft_shared"),
)
Sharing = type(
    "Sharing", (), {"__doc__": __doc__, **{name: Later(f"syft_mpc.encoding:Encoding.{name}") for name in METHODS}}
)
