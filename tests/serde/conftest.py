"""Load the backends of the installed frameworks, which registers their codecs."""

import importlib.util


def pytest_configure() -> None:
    if importlib.util.find_spec("numpy"):
        import syft_numpy.hook  # noqa: F401, PLC0415 - the framework may be absent
    if importlib.util.find_spec("torch"):
        import syft_torch.hook  # noqa: F401, PLC0415 - the framework may be absent
