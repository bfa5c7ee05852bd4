"""Links: make a ``torch.autograd.Function``, whose code is local, part of a remote graph.

The forward and backward of a user's function run on the client, as commands. In the remote graph a node represents it:

1. ``apply`` runs ``forward`` without gradients, as torch does, and links its results to its inputs with a node.
2. Every local tensor that is computed from the results remembers the link.
3. A backward pass first asks for the gradients that arrive at each node, the latest node first, and runs ``backward``
   on them locally. Then the pass itself runs over the whole graph, and each node returns the gradients computed for it.

So gradients are accumulated in the same order as in a local graph. A pass that reaches a node without such gradients
raises an error.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.autograd.function import FunctionCtx, _is_setup_context_defined
from torch.autograd.graph import GradientEdge
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from syft_core.exceptions import NotCollocatedError, OperationNotAllowedError
from syft_core.hook.attributes import Op
from syft_core.hook.chain import end_of
from syft_core.hook.dispatch import dispatch
from syft_core.hook.rules import leaves
from syft_core.values import Args, Function, Kwargs, Nested, Tensor
from syft_torch.versions import saves_inputs

# --- on the worker


class _Node(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """Represents a function that runs on the client; its gradients are computed before the pass that needs them."""

    @staticmethod
    def forward(ctx: Any, outputs: Sequence[torch.Tensor], saved: Sequence[torch.Tensor], *_inputs: Any) -> Nested:
        ctx.set_materialize_grads(False)
        ctx.count, ctx.gradients = len(outputs), None
        ctx.saved = [(tensor, tensor._version) for tensor in saved]
        return *[output.detach() for output in outputs], outputs[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, *_gradients: Any) -> Nested:
        if ctx.gradients is None:
            raise RuntimeError(
                "cannot run backward: the graph contains a torch.autograd.Function that runs on the client, and this "
                "pass starts from a tensor that the client did not compute from its result; start from one it did"
            )
        return None, None, *ctx.gradients


def link(outputs: list[torch.Tensor], inputs: list[torch.Tensor], saved: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the outputs as results of a node with these inputs, and a handle of the node."""
    return list(_Node.apply(outputs, saved, *inputs))


def backward(*args: Any, links: Sequence[tuple[torch.Tensor, Sequence[torch.Tensor]]] = (), **kwargs: Any) -> None:
    """Run ``torch.autograd.backward`` with the computed gradients of the nodes."""
    _run_with(links, torch.autograd.backward, *args, **kwargs)


def grad(
    outputs: Any,
    inputs: Any,
    *args: Any,
    links: Sequence[tuple[torch.Tensor, Sequence[torch.Tensor]]] = (),
    **kwargs: Any,
) -> list[torch.Tensor | None]:
    """Run ``torch.autograd.grad`` in the same way; a single handle as ``inputs`` means all results of its node."""
    node = inputs.grad_fn if isinstance(inputs, torch.Tensor) else None
    if isinstance(node, _Node._backward_cls):
        if any(tensor._version != version for tensor, version in node.saved):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                "a tensor that a torch.autograd.Function has saved for backward"
            )
        inputs = [GradientEdge(node, place) for place in range(node.count)]
    return list(_run_with(links, torch.autograd.grad, outputs, inputs, *args, **kwargs))


def _run_with(links: Any, run: Function, *args: Any, **kwargs: Any) -> Nested:
    for handle, gradients in links:
        handle.grad_fn.gradients = gradients
    try:
        return run(*args, **kwargs)
    finally:
        for handle, _gradients in links:
            handle.grad_fn.gradients = None


# --- on the client


class _Context(FunctionCtx):  # type: ignore[misc]  # torch has no types here
    """The state that ``forward`` saves for ``backward``, with the interface of torch's context."""

    def __init__(self, args: Args) -> None:
        self.needs_input_grad = tuple([isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args])
        self.to_save: Sequence[Any] = ()
        self.non_differentiable: Sequence[Any] = ()
        self.materialize_grads = True

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return tuple(self.to_save)

    def mark_dirty(self, *_args: Any) -> None:
        raise OperationNotAllowedError(
            "cannot run a torch.autograd.Function that changes its input in place on remote tensors: its backward runs "
            "on the client, and the graph is on the worker; return a new tensor instead"
        )


class AppliedFunction:
    """A function that was applied, with the state for its backward."""

    _numbers = itertools.count()

    def __init__(self, function: Any, context: _Context, args: Args, results: Sequence[Any]) -> None:
        self.function = function
        self.context = context
        self.inputs = [place for place, needed in enumerate(context.needs_input_grad) if needed]
        """The positions of the arguments that need gradients."""
        self.outputs = [place for place, result in enumerate(results) if _is_differentiable(result, context)]
        self.forms = [(result.shape, result.dtype) if isinstance(result, torch.Tensor) else None for result in results]
        self.number = next(self._numbers)
        self.before: dict[int, Function] = OrderedDict()
        self.after: dict[int, Function] = OrderedDict()
        given = [results[place] for place in self.outputs], [args[place] for place in self.inputs]
        saved = [tensor for tensor in context.to_save if _is_chain(tensor)]
        *self.linked, self.handle = _call("link", *given, saved)

    def run_backward(self, gradients: Sequence[Any], differentiable: bool) -> list[Any]:
        """Return the gradients of the inputs that need them, given those of the outputs."""
        given = [self._zeros(form) for form in self.forms]
        for place, gradient in zip(self.outputs, gradients, strict=True):
            given[place] = given[place] if gradient is None else gradient
        function = self.function
        backward = function.backward if function.vjp is torch.autograd.Function.vjp else function.vjp
        with torch.set_grad_enabled(differentiable), self._place_new_tensors():
            arrived = tuple(given)
            for hook in list(self.before.values()):
                arrived = _or(hook(arrived), arrived)
            found = backward(self.context, *arrived)
            found = found if isinstance(found, tuple) else (found,)
            for hook in list(self.after.values()):
                found = _or(hook(found, arrived), found)
        return [found[place] if place < len(found) else None for place in self.inputs]

    def _place_new_tensors(self) -> AbstractContextManager[object]:
        """Return a mode that creates tensors where the graph is, as in the forward of a remote module."""
        pointer = end_of(self.handle)
        location = getattr(pointer, "_location", None)
        return nullcontext() if location is None else pointer.framework.place_new_tensors(location)

    # --- the interface of a graph node, which torch's module hooks use

    def name(self) -> str:
        """Return the name that torch gives such a node."""
        return f"{self.function.__name__}Backward"

    def register_prehook(self, hook: Function) -> RemovableHandle:
        """Call ``hook`` with the gradients of the outputs; it may return replacements."""
        return _register(self.before, hook)

    def register_hook(self, hook: Function) -> RemovableHandle:
        """Call ``hook`` with the gradients of the inputs and outputs; it may replace those of the inputs."""
        return _register(self.after, hook)

    def _zeros(self, form: Any) -> Tensor:
        if form is None or not self.context.materialize_grads:
            return None
        return self.handle.new_zeros(form[0], dtype=form[1])


def _register(hooks: dict[int, Function], hook: Function) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _or(changed: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the result of a hook as a tuple, or its argument if the result is None."""
    if changed is None:
        return before
    return changed if isinstance(changed, tuple) else (changed,)


live: set[weakref.ref[AppliedFunction]] = set()
"""The links that some tensor remembers; while there are none, calls are not tracked."""


def make_apply(apply: Any, chain: type) -> Any:
    """Return an ``apply`` for ``torch.autograd.Function`` that links chains, and is torch's own otherwise."""

    @functools.wraps(apply.__get__(None, torch.autograd.Function))  # A class method of Python or, in torch 2.15, of C.
    def substitute(cls: Any, *args: Any, **kwargs: Any) -> Nested:
        for arg in (*args, *kwargs.values()) if kwargs else args:
            if isinstance(arg, chain) and not saves_inputs(cls):
                return _apply(cls, args, kwargs)
        return apply.__get__(None, cls)(*args, **kwargs)

    return classmethod(substitute)


def _apply(function: Any, args: Args, kwargs: Kwargs) -> Nested:
    """Run a user's function on chains, and make it part of their graph."""
    if any(isinstance(arg, torch.Tensor) and arg.requires_grad and not _is_chain(arg) for arg in args):
        where = next(arg for arg in args if _is_chain(arg))
        raise NotCollocatedError.local(f"{function.__name__}.apply", getattr(where.child, "location_id", "a chain"))
    with torch.no_grad(), _repeatable(function, args):
        if _is_setup_context_defined(function.setup_context):
            bound = inspect.signature(function.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
            context = _Context(args)
            result = function.forward(*args)
            function.setup_context(context, args, result)
        else:
            context = _Context(args)
            result = function.forward(context, *args, **kwargs)
    results = result if isinstance(result, tuple) else (result,)
    if not (torch.is_grad_enabled() and any(context.needs_input_grad)):
        return result
    if not any(_is_differentiable(part, context) for part in results):
        return result
    link = AppliedFunction(function, context, args, results)
    linked, found = list(results), list(link.linked)
    del link.linked
    before = _links_of(args)
    for place, output in zip(link.outputs, found, strict=True):
        output._syft_links, output._syft_link = before | {link}, link
        linked[place] = output
    live.add(weakref.ref(link, live.discard))
    return tuple(linked) if isinstance(result, tuple) else linked[0]


def _repeatable(function: Any, args: Args) -> AbstractContextManager[Any]:
    """Return a context for a forward that refuses remote random numbers in a reentrant checkpoint, which repeats it."""
    locations = [getattr(arg.child, "_location", None) for arg in args if _is_chain(arg)]
    elsewhere = any(location is not None and location.face is location for location in locations)
    is_checkpoint = function.__qualname__ == "CheckpointFunction" and function.__module__ == "torch.utils.checkpoint"
    return _Repeatable() if is_checkpoint and elsewhere else nullcontext()


class _Repeatable(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
    """Refuses operations that draw random numbers in another process, which cannot be repeated."""

    def __torch_function__(self, func: Function, types: Any, args: Args = (), kwargs: Kwargs | None = None) -> Nested:
        named = kwargs or {}
        chain = next(filter(_is_chain, leaves((args, named))), None)
        op = None if chain is None else chain.framework.ops.by_func.get(func)
        if op is not None and op.random and _draws(op, args, named):
            raise OperationNotAllowedError(
                f"cannot run {op.name!r} in a reentrant checkpoint on a worker in another process: it would repeat "
                f"with different random numbers; write `checkpoint(..., use_reentrant=False)`"
            )
        return func(*args, **named)


def _draws(op: Op, args: Args, kwargs: Kwargs) -> bool:
    """Return whether a call draws random numbers: it does in training mode, unless its probability is zero."""
    try:
        given = inspect.signature(op.func).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # It is not written in Python.
        given = {**kwargs, **({"dropout_p": args[4]} if len(args) > 4 else {})}
        return op.attr != "scaled_dot_product_attention" or bool(given.get("dropout_p"))
    return bool(given.get("training", True)) and given.get("p", given.get("dropout_p")) != 0


class _Repeat(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """The identity; its backward repeats the forward of a checkpoint, which changes tensors a second time."""

    @staticmethod
    def forward(ctx: Any, result: Nested, forward: Function) -> Nested:
        ctx.repeat = forward
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Nested:
        with torch.no_grad():
            ctx.repeat()
        return gradient, None


class _Checkpoint(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
    """Repeats ``forward`` in the backward pass, as torch does locally, if it changes tensors in place.

    The gradients do not need that, because the worker keeps what it needs for them.
    """

    def __init__(self, forward: Function) -> None:
        super().__init__()
        self._forward = forward
        self._writes = self._is_linked = False

    def __torch_function__(self, func: Function, types: Any, args: Args = (), kwargs: Kwargs | None = None) -> Nested:
        named = kwargs or {}
        result = func(*args, **named)
        if not self._writes and (chain := next(filter(_is_chain, leaves((args, named))), None)) is not None:
            op = chain.framework.ops.by_func.get(func)
            self._writes = op is not None and bool(op.targets(args, named))
        if self._writes and not self._is_linked and _is_chain(result) and result.requires_grad:
            self._is_linked = True
            return _Repeat.apply(result, self._forward)
        return result


def make_checkpoint(native: Function, chain: type) -> Function:
    """Return the generator of non-reentrant checkpoints, which runs around their forward, for chains and others."""
    signature = inspect.signature(native)

    @functools.wraps(native)
    def substitute(*args: Any, **kwargs: Any) -> Nested:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        run, values, named = (given.arguments[name] for name in ("fn", "args", "kwargs"))
        if not any(isinstance(leaf, chain) for leaf in leaves((values, named))):
            yield from native(*args, **kwargs)
            return
        state = torch.get_rng_state() if given.arguments["preserve_rng_state"] else None

        def forward() -> None:
            with torch.random.fork_rng(devices=[], enabled=state is not None):
                if state is not None:
                    torch.set_rng_state(state)
                run(*values, **named)

        with _Checkpoint(forward):
            yield from native(*args, **kwargs)

    return substitute


def dispatch_linked(op: Op, args: Args, kwargs: Kwargs) -> Nested:
    """Dispatch a call on chains while there are links: results remember them, and backward passes use them."""
    if not op.differentiates:
        result = dispatch(op, args, kwargs)
        return _remember(result, args, kwargs) if torch.is_grad_enabled() else result
    names = _ARGUMENTS["grad" if not op.accumulates else op.spelling]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    roots = given["tensors" if op.accumulates else "outputs"]
    links = sorted(_links_of(roots), key=lambda link: link.number, reverse=True)
    return _differentiate(op, given, roots, links) if links else dispatch(op, args, kwargs)


_ARGUMENTS = {
    "method": ("tensors", "grad_tensors", "retain_graph", "create_graph", "inputs"),
    "function": ("tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"),
    "grad": ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs", "allow_unused"),
}
"""The arguments of ``Tensor.backward``, ``torch.autograd.backward`` and ``torch.autograd.grad``, in order."""


def _differentiate(op: Op, given: Kwargs, roots: Any, links: list[AppliedFunction]) -> Nested:
    if "gradient" in given:
        given["grad_tensors"] = given.pop("gradient")
    started = given.get("grad_tensors" if op.accumulates else "grad_outputs")
    create_graph = bool(given.get("create_graph"))
    known: list[tuple[Any, list[Any]]] = []
    for link in links:
        options = {"create_graph": create_graph, "allow_unused": True, "links": known}
        gradients = _call("grad", roots, link.handle, started, True, **options)
        if any(gradient is not None for gradient in gradients):
            known.append((link.handle, link.run_backward(gradients, create_graph)))
    given["links"] = known
    result = _call("backward" if op.accumulates else "grad", **given)
    if op.accumulates:
        return result
    result = tuple(result)
    return _remember(result, (roots, *[found for _, found in known]), {}) if create_graph else result


def _remember(result: Nested, args: Any, kwargs: Kwargs) -> Nested:
    if links := _links_of((args, kwargs)):
        for leaf in leaves(result):
            if _is_chain(leaf) and leaf.requires_grad:
                leaf._syft_links = _links_of(leaf) | links
    return result


def _links_of(values: Any) -> frozenset[AppliedFunction]:
    found: frozenset[AppliedFunction] = frozenset()
    for leaf in leaves(values):
        if (links := getattr(leaf, "__dict__", {}).get("_syft_links")) is not None:
            found |= links
    return found


def _is_chain(value: Any) -> bool:
    return getattr(type(value), "is_followed", False)


def _is_differentiable(result: Nested, context: _Context) -> bool:
    if not isinstance(result, torch.Tensor) or any(result is other for other in context.non_differentiable):
        return False
    return bool(result.is_floating_point() or result.is_complex())


def _call(name: str, *args: Any, **kwargs: Any) -> Nested:
    chain = next(filter(_is_chain, leaves((args, kwargs))))
    return dispatch(chain.framework.ops.by_name[f"torch.autograd.links.{name}"], args, kwargs)


FUNCTIONS = {f"torch.autograd.links.{function.__name__}": function for function in (link, backward, grad)}
"""The functions that workers run for links, by their names in the op table."""
