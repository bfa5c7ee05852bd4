"""The backend keeps its contract."""

from syft_toy.testing import ToyConformance


class TestToy(ToyConformance): ...
