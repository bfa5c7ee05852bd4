"""Workers in this process for every test, with and without the wire format."""

from ...workers.conftest import alice, bob, hook, me, numpy_hook, serialize  # noqa: F401  # fixtures
