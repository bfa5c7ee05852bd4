"""Sharing: the tensor methods that encode numbers with fixed precision, and share them."""

from __future__ import annotations

from typing import Any

from syft_core.crypto import integers
from syft_core.crypto.additive_shared import FAST, AdditiveSharingTensor
from syft_core.crypto.authenticated_tensor import AuthenticatedTensor
from syft_core.crypto.fixed_precision import FixedPrecisionTensor
from syft_core.exceptions import PrecisionError, ProtocolError
from syft_core.hook.chain import below_wrapper, end_of, is_wrapper
from syft_core.hook.dispatch import framework_of
from syft_core.location import WorkerLike
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import replace_end, wrap
from syft_core.values import Tensor


class Sharing:
    """Mixin with the methods to encode and share tensors, for wrappers and plain tensors."""

    def fix_precision(
        self,
        base: int = 10,
        precision_fractional: int = 3,
        field: str = "long",
        dtype: Any = None,
        no_wrap: bool = False,
    ) -> Tensor:
        """Encode real numbers as integers with ``precision_fractional`` digits of ``base``.

        ``field`` is the ring: "long" (64 bits) or "int" (32 bits). ``dtype`` is the type of the numbers when they are
        decoded, by default that of the tensor. What a pointer points to is encoded by its worker, without telling the
        caller whether it fits: numbers that are too large become the largest, and NaN becomes 0.
        """
        value = below_wrapper(self)
        if is_wrapper(self) and not isinstance(value, PointerTensor):
            raise PrecisionError.not_plain()
        layer = FixedPrecisionTensor(base, precision_fractional, field, dtype or framework_of(self).real_dtype(value))
        layer.child = layer.encode_remotely(value) if is_wrapper(self) else layer.encode(value)
        if no_wrap:
            return layer
        return _keep_gradient(layer.wrap(), getattr(self, "requires_grad", False))

    def fix_prec(self, *args: Any, **options: Any) -> Tensor:
        """Alias of ``fix_precision``."""
        return self.fix_precision(*args, **options)

    def fix_precision_(self, *args: Any, **options: Any) -> Tensor:
        """Encode the numbers, and turn this tensor into the result, in place."""
        framework_of(self).replace_in_place(self, self.fix_precision(*args, **options))
        return self

    def float_precision(self) -> Tensor:
        """Return the real numbers that a chain with fixed precision encodes."""
        layer = below_wrapper(self)
        if not isinstance(layer, FixedPrecisionTensor):
            raise PrecisionError.not_fixed()
        decoded = layer.float_precision()
        return wrap(decoded) if isinstance(decoded, PointerTensor) else decoded

    def float_prec(self) -> Tensor:
        """Alias of ``float_precision``."""
        return self.float_precision()

    def float_precision_(self) -> Tensor:
        """Decode the numbers, and turn this tensor into the result, in place."""
        framework_of(self).replace_in_place(self, self.float_precision())
        return self

    def share(
        self,
        *owners: WorkerLike,
        crypto_provider: WorkerLike | None = None,
        protocol: str = FAST,
        requires_grad: bool | None = None,
        no_wrap: bool = False,
    ) -> Tensor:
        """Share integers, or numbers with fixed precision, among workers; each holds a share that looks random.

        ``crypto_provider`` is the worker that supplies correlated random numbers; it must not be one of the owners.
        Without one, values can be added, multiplied by public integers, moved and fetched.
        ``protocol`` selects how values are compared: "fast", or "snn" for SecureNN, which needs two owners. With
        "authenticated", parties that cheat are detected and named; values have 32 bits, and cannot be compared. What a
        pointer points to is shared by its worker, which must be one of the owners; nobody else sees it.
        """
        end = end_of(self)
        if isinstance(end, AdditiveSharingTensor | AuthenticatedTensor):
            raise ProtocolError.shared_already()
        if any(isinstance(worker, list | tuple) for worker in owners):
            raise ProtocolError.a_list()
        owner = self.owner  # type: ignore[attr-defined]  # mixed into subclasses of Identified
        shared = integers.share(end, owners, crypto_provider, owner, protocol)
        if not is_wrapper(self):
            return shared if no_wrap else shared.wrap()
        wrapper = replace_end(self, end, shared)
        wanted = getattr(self, "requires_grad", False) if requires_grad is None else requires_grad
        wrapper = _keep_gradient(wrapper, wanted)
        return below_wrapper(wrapper) if no_wrap else wrapper

    def share_(self, *owners: Any, **options: Any) -> Tensor:
        """Share the values, and turn this tensor into the result, in place."""
        framework_of(self).replace_in_place(self, self.share(*owners, **options))
        return self

    def encrypt(
        self,
        *,
        workers: Any,
        crypto_provider: Any = None,
        base: int = 10,
        precision_fractional: int = 3,
        field: str = "long",
        dtype: Any = None,
        protocol: str = FAST,
        **options: Any,
    ) -> Tensor:
        """Encode real numbers and share them: ``fix_precision(...).share(...)``.

        ``protocol`` may also be "mpc", as in PySyft 0.2: the default.
        """
        if not isinstance(workers, list | tuple):
            raise ProtocolError.not_a_list()
        encoded = self.fix_precision(base, precision_fractional, field, dtype)
        options["protocol"] = FAST if protocol == "mpc" else protocol
        return encoded.share(*workers, crypto_provider=crypto_provider, **options)

    def decrypt(self) -> Tensor:
        """Fetch shared numbers and decode them: ``get().float_precision()``."""
        return self.get().float_precision()  # type: ignore[attr-defined]  # mixed into Travelling

    def reconstruct(self) -> Tensor:
        """Open a shared value at every party, if all of them permit it; returns a multi-pointer."""
        return self._syft_shared().reconstruct().wrap()

    def refresh(self) -> Tensor:
        """Return new random shares of the same value."""
        end = self._syft_shared()
        return replace_end(self, end, end.refresh())

    def _syft_shared(self) -> AdditiveSharingTensor:
        end = end_of(self)
        if not isinstance(end, AdditiveSharingTensor):
            raise ProtocolError.not_shared()
        return end


def _keep_gradient(wrapper: Tensor, requires_grad: bool) -> Tensor:
    """Make a wrapper require a gradient, if its tensor did."""
    if requires_grad:
        wrapper.requires_grad = True
    return wrapper
