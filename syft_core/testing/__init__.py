"""The conformance suites: what every backend and every transport passes."""

from syft_core.testing.conformance import BackendConformance
from syft_core.testing.transport import TransportConformance, equip

__all__ = ["BackendConformance", "TransportConformance", "equip"]
