"""Wrap the tensors of a response in a layer, or store them on a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from syft_core.exceptions import ResponseSignatureError
from syft_core.hook.argument_plans import for_signature
from syft_core.hook.rules import backward_func, build_rule, is_flat, map_leaves, map_marked, resolve
from syft_core.values import Function, Nested, Tensor

# --- Wrapping


def build_wrap_response(response: Nested, wrap_type: type) -> Function:
    """Build a function that wraps the tensors of responses of this type in ``wrap_type(**attributes)``."""
    if not is_flat(type(response)):
        return partial(_wrap_inside, wrap_type)
    return _get_backward_func(wrap_type) if build_rule(response) else _return_response


def _wrap_inside(wrap_type: type, response: Nested, **attributes: object) -> Nested:
    wrap: Function | None = None

    def wrap_leaf(leaf: Nested) -> Nested:
        nonlocal wrap
        if not build_rule(leaf):
            return leaf
        wrap = wrap or _get_backward_func(wrap_type)
        return wrap(leaf, **attributes)

    return map_leaves(wrap_leaf, response)


def _return_response(response: Nested, **_attributes: object) -> Nested:
    return response


def _get_backward_func(wrap_type: type) -> Function:
    found: Function | None = resolve(backward_func, wrap_type)
    if found is None:
        raise backward_func.missing_error(wrap_type)
    return found


def build_wrap_response_from_function(
    response: Nested, wrap_type: type, wrap_args: Mapping[str, object]
) -> Callable[[Nested], Nested]:
    """Build a function that wraps responses like ``response``: ``f(pointer)`` is ``(Wrapper)>Pointer``."""
    return for_signature(response, partial(build_wrap_response(response, wrap_type), **wrap_args), whole=True)


build_wrap_reponse_from_function = build_wrap_response_from_function
"""The misspelt name in PySyft 0.2.0 to 0.2.4."""


def build_wrap_response_with_rules(
    response: Nested,
    rules: object,
    wrap_type: type,
    wrap_args: Mapping[str, object],
    return_tuple: bool = False,
    return_list: bool = False,
) -> Callable[[Nested], Nested]:
    """Build a function that wraps the tensors, marked in ``rules``, of sequences like ``response``.

    One element is returned by itself unless ``return_tuple`` or ``return_list`` is set; a list stays a list.
    """
    wrap = partial(_get_backward_func(wrap_type), **wrap_args)
    as_list = return_list or isinstance(response, list)
    return for_signature(
        response,
        lambda items: (list if as_list else tuple)(map_marked(wrap, items, rules)),
        whole=return_tuple or as_list or len(response) != 1,
    )


# --- Registration on a worker


class ResultStore(Protocol):
    """A worker, as far as storing results needs it."""

    def register_obj(self, obj: Tensor, obj_id: int | str | None = None) -> object:
        """Store a tensor, under an id if one is given."""


def register_tensor(tensor: Tensor, owner: ResultStore, response_ids: list[int] | None = None) -> Tensor:
    """Store ``tensor`` on ``owner``, under the next of ``response_ids`` if given, and return it."""
    if response_ids is None:
        owner.register_obj(tensor)
        return tensor
    if not response_ids:
        raise ResponseSignatureError()
    owner.register_obj(tensor, obj_id=response_ids.pop(0))
    return tensor


def build_register_response_function(response: Nested) -> Function:
    """Build a function that stores the tensors of responses like ``response``."""
    return for_signature(response, partial(_register_marked, build_rule(response)), whole=True)


def build_register_response(response: Nested, rules: object, return_tuple: bool = False) -> Function:
    """Build a function that stores the tensors, marked in ``rules``, of sequences like ``response``."""
    whole = return_tuple or isinstance(response, list) or len(response) != 1
    return for_signature(response, partial(_register_marked, rules), whole)


def _register_marked(rules: Nested, response: Nested, response_ids: list[int], owner: ResultStore) -> Nested:
    return map_marked(lambda tensor: register_tensor(tensor, owner, response_ids), response, rules)
