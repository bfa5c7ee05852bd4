"""Call an operation on a chain together with plain tensors."""

from __future__ import annotations

from .checks import Backend, Case, DifferenceError, Raised, attempt, map_tensors, same_result, tensors


def check_mixed(case: Case, backend: Backend) -> None:
    """Fail unless ``case`` gives the same result with a chain as its first tensor and plain tensors as the others.

    Results are chains, except a plain argument that the operation returns, such as ``out=``.
    """
    plain = map_tensors(backend, backend.copy, (case.args, case.kwargs))
    twins = map_tensors(backend, backend.copy, plain)
    expected, _ = backend.run(lambda: attempt(case.call, *plain))
    if len({id(tensor) for tensor in tensors(backend, plain)}) < 2 or isinstance(expected, Raised):
        return
    first = next(tensors(backend, twins))
    mixed = map_tensors(backend, lambda tensor: backend.chain(tensor) if tensor is first else tensor, twins)
    actual, _ = backend.run(lambda: attempt(case.call, *mixed))
    if isinstance(actual, Raised):
        raise DifferenceError(f"expected {expected!r:.300}, got {actual!r:.600}")
    arguments = dict(zip(map(id, tensors(backend, plain)), tensors(backend, mixed), strict=True))
    for one, other in zip(tensors(backend, expected), tensors(backend, actual), strict=True):
        if other is not arguments.get(id(one)):
            same_result(case, backend, one, other)
