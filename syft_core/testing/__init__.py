"""The contracts of backends and transports as test classes, for third parties to subclass."""

import pytest

for _module in (
    *("calls", "chains", "disclosure", "forms", "hooking", "layers"),
    *("op_table", "pointers", "private_data", "section", "serde", "spelling", "transport"),
):
    pytest.register_assert_rewrite(f"{__name__}.{_module}")

from syft_core.testing.conformance import BackendConformance  # noqa: E402  # asserts are rewritten at import
from syft_core.testing.transport import TransportConformance, equip  # noqa: E402

__all__ = ["BackendConformance", "TransportConformance", "equip"]
