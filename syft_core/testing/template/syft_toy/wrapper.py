"""Wrapper: what a toy user holds in place of a vector."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from syft_core.exceptions import WrapperLeakError
from syft_core.hook.dispatch import WRAPPER, Forwarding, dispatch, framework_of
from syft_core.pointers.travel import Travelling
from syft_core.tensors.identity import Identified, format_chain


class Wrapper(Travelling, Identified, Forwarding):
    """Behaves like a vector: toy's functions, methods and operators are dispatched to the chain."""

    rank: ClassVar[int] = WRAPPER
    is_wrapper = True
    records_lineage: ClassVar[bool] = False

    def __toy_function__(self, function: Any, args: Any, kwargs: Any) -> Any:
        return dispatch(framework_of(self).ops.of(function), args, kwargs)

    def __repr__(self) -> str:
        return format_chain(self)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise WrapperLeakError.at("pickle", "save the tensor under its layers instead")
