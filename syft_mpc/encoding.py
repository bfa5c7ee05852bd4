"""Encoding: the tensor methods that encode numbers with fixed precision, and share them."""

from __future__ import annotations

from typing import Any

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.chain import below_wrapper, end_of, is_wrapper, iter_links
from syft_core.hook.dispatch import framework_of
from syft_core.location import WorkerLike
from syft_core.pointers.pointer_tensor import PointerTensor
from syft_core.pointers.travel import replace_end
from syft_core.tensors.identity import keeping_words
from syft_core.tensors.numeric import NumericTensor
from syft_core.values import Nested, Tensor
from syft_mpc import integers
from syft_mpc.additive_shared import FAST, FIELDS, SECURENN, AdditiveSharingTensor
from syft_mpc.authenticated_tensor import AUTHENTICATED, AuthenticatedTensor
from syft_mpc.errors import PrecisionError, ProtocolError
from syft_mpc.fixed_precision import RINGS, FixedPrecisionTensor, find_ring
from syft_mpc.kernels import dtype_name
from syft_mpc.truncation import BITS


@keeping_words("fix_precision", "fix_prec", "float_precision", "float_prec", "share", "encrypt", "decrypt", "refresh")
class Encoding:
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
        decoded, by default that of the tensor; "long" and "int" are rings, as in PySyft 0.2. What a pointer points to
        is encoded by its worker, without telling the caller whether it fits: numbers that are too large become the
        largest, and NaN becomes 0.
        """
        end = end_of(self)
        if any(isinstance(link, NumericTensor) for link in iter_links(self)):
            raise PrecisionError.not_plain()
        _require_no_graph(self, "encode")
        layer = FixedPrecisionTensor(base, precision_fractional, field, dtype)
        if isinstance(layer.dtype, str):
            layer.dtype = _find_dtype(end, layer.dtype)
        layer.dtype = layer.dtype or framework_of(self).real_dtype(end)
        layer.child = layer.encode_remotely(end) if isinstance(end, PointerTensor) else layer.encode(end)
        encoded = replace_end(self, end, layer) if is_wrapper(self) else layer.wrap()
        if no_wrap:
            return below_wrapper(encoded)
        return _keep_gradient(encoded, getattr(self, "requires_grad", False))

    fix_prec = fix_precision

    def fix_precision_(self, *args: Any, **options: Any) -> Tensor:
        """Encode the numbers, and turn this tensor into the result, in place."""
        framework_of(self).replace_in_place(self, self.fix_precision(*args, **options))
        return self

    fix_prec_ = fix_precision_

    def float_precision(self) -> Tensor:
        """Return the real numbers that a chain encodes, outside of its graph; layers above fixed precision stay."""
        layer = next((link for link in iter_links(self) if isinstance(link, FixedPrecisionTensor)), None)
        if layer is None:
            raise PrecisionError.not_here() if isinstance(end_of(self), PointerTensor) else PrecisionError.not_fixed()
        return replace_end(self, layer, layer.float_precision())

    float_prec = float_precision

    def float_precision_(self) -> Tensor:
        """Decode the numbers, and turn this tensor into the result, in place."""
        framework_of(self).replace_in_place(self, self.float_precision())
        return self

    float_prec_ = float_precision_

    def share(
        self,
        *owners: WorkerLike,
        crypto_provider: WorkerLike | None = None,
        protocol: str = FAST,
        field: str | int | None = None,
        dtype: str | None = None,
        requires_grad: bool | None = None,
        no_wrap: bool = False,
    ) -> Tensor:
        """Share integers, or numbers with fixed precision, among workers; each holds a share that looks random.

        ``crypto_provider`` is the worker that supplies correlated random numbers; it must not be one of the owners.
        Without one, values can be added, multiplied by public integers, moved and fetched.
        ``protocol`` selects how values are compared: "fast", or "snn" for SecureNN, which needs two owners. With
        "authenticated", parties that cheat are detected and named; values have 32 bits, and cannot be compared. What a
        pointer points to is shared by its worker, which must be one of the owners; nobody else sees it.
        ``dtype`` or ``field``, "long" or "int", is the ring, by default that of the numbers.
        """
        end = end_of(self)
        if isinstance(end, AdditiveSharingTensor | AuthenticatedTensor):
            raise ProtocolError.shared_already()
        _require_no_graph(self, "share")
        if any(isinstance(worker, list | tuple) for worker in owners):
            raise ProtocolError.a_list()
        if dtype is not None or field is not None:
            end = _convert_to_ring(self, end, find_ring(dtype if dtype is not None else field))
        owner = self.owner  # type: ignore[attr-defined]  # mixed into subclasses of Identified
        shared = integers.share(end, owners, crypto_provider, owner, protocol)
        if not is_wrapper(self):
            return shared if no_wrap else shared.wrap()
        wrapper = replace_end(self, end_of(self), shared)
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
        inplace: bool = False,
        **options: Any,
    ) -> Tensor:
        """Encode real numbers and share them: ``fix_precision(...).share(...)``.

        ``protocol`` may also be "mpc", as in PySyft 0.2: the default. With ``inplace``, this tensor becomes the result.
        """
        if not isinstance(workers, list | tuple):
            raise ProtocolError.not_a_list()
        encoded = self.fix_precision(base, precision_fractional, field, dtype)
        options["protocol"] = FAST if protocol == "mpc" else protocol
        shared = encoded.share(*workers, crypto_provider=crypto_provider, **options)
        if inplace:
            framework_of(self).replace_in_place(self, shared)
        return self if inplace else shared

    def decrypt(self, protocol: str = "mpc") -> Tensor:
        """Fetch shared numbers and decode them, outside of their graph: ``get().float_precision()``.

        ``protocol`` has no effect, as the shares have one: PySyft 0.2 takes it.
        """
        if protocol not in ("mpc", FAST, SECURENN, AUTHENTICATED):
            raise ProtocolError.unknown_protocol(protocol)
        return self.get().float_precision()  # type: ignore[attr-defined]  # mixed into Travelling

    def reconstruct(self) -> Tensor:
        """Open a shared value at every party, if all of them permit it; returns a multi-pointer."""
        return self._syft_shared().reconstruct().wrap()

    def refresh(self) -> Tensor:
        """Return new random shares of the same value: add random shares of zeros, as any other operation."""
        end = self._syft_shared()
        return self + replace_end(self, end, end.zero())

    def _syft_shared(self) -> AdditiveSharingTensor:
        end = end_of(self)
        if not isinstance(end, AdditiveSharingTensor):
            raise ProtocolError.not_shared()
        return end


def _require_no_graph(tensor: Tensor, verb: str) -> None:
    """Refuse a tensor that is part of a graph: encoding or sharing it would cut off the gradients."""
    if getattr(tensor, "requires_grad", False) and not tensor.is_leaf:
        raise OperationNotAllowedError.in_graph(verb)


def _find_dtype(tensor: Tensor, name: str) -> Nested:
    found = getattr(integers.kernels_of(tensor).xp, name, None)
    if found is None:
        raise PrecisionError.unknown_field(name)
    return found


def _convert_to_ring(chain: Tensor, end: Tensor, ring: str) -> Tensor:
    """Return integers in the ring that the user names; numbers with fixed precision have one already."""
    own, wanted = dtype_name(end), RINGS[ring]
    if own == wanted:
        return end
    layers = [link for link in iter_links(chain) if isinstance(link, FixedPrecisionTensor)]
    if layers or isinstance(end, PointerTensor):
        raise PrecisionError.another_ring(ring, FIELDS.get(own, own))
    if own.startswith(("float", "bfloat", "complex")):
        return end  # refused with the usual advice
    kernels = integers.kernels_of(end)
    if not kernels.is_within(kernels.to_floats(end), 2.0 ** (BITS[wanted] - 1)):
        raise PrecisionError.out_of_range(2.0 ** (BITS[wanted] - 1))
    return kernels.cast(end, wanted)


def _keep_gradient(wrapper: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        wrapper.requires_grad = True
    return wrapper
