"""Workers on the network, served from threads of the test process."""

from ..network.conftest import any_hook, connect, far, hook, proxy, server, torch_hook  # noqa: F401  # fixtures
