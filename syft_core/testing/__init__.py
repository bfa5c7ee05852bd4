"""The conformance suite that every backend passes."""

from syft_core.testing.conformance import BackendConformance

__all__ = ["BackendConformance"]
