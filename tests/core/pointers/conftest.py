"""Workers of the toy framework, in this process."""

from ..workers.conftest import alice, bob, me  # noqa: F401  # fixtures
