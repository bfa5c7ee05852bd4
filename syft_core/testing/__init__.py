"""The contracts of backends and transports as test classes, for third parties to subclass."""

import pkgutil

from syft_core.exceptions import DependencyError

try:
    import pytest
except ModuleNotFoundError as _error:
    raise DependencyError.needed("syft_core.testing", "pytest", "pip install pytest") from _error

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    pytest.register_assert_rewrite(_module.name)

from syft_core.testing.conformance import BackendConformance  # noqa: E402  # asserts are rewritten at import
from syft_core.testing.transport import TransportConformance, equip  # noqa: E402

__all__ = ["BackendConformance", "TransportConformance", "equip"]
