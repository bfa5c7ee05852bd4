"""Privacy-preserving machine learning: chains of layers over the tensors of any framework.

Everything a user needs is here, loaded when it is first asked for; importing this package imports no framework.
Names that come from features and installed backends (plans, or the hook of torch) are found here too.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from pkgutil import resolve_name as _resolve_name
from typing import Any

_NAMES = {
    "AbstractTensor": "syft_core.tensors.abstract:AbstractTensor",
    "FrameworkHook": "syft_core.hook.hook:FrameworkHook",
    "ID_PROVIDER": "syft_core.tensors.identity:ID_PROVIDER",
    "LoggingTensor": "syft_core.tensors.logging:LoggingTensor",
    "PlusIsMinusTensor": "syft_core.tensors.plus_is_minus:PlusIsMinusTensor",
    "PolynomialTensor": "syft_core.tensors.polynomial:PolynomialTensor",
    "current_hook": "syft_core.hook.hook:current_hook",
    "hook_args": "syft_core.hook.hook_args",
    "VirtualWorker": "syft_core.workers.party.virtual:VirtualWorker",
    "CallablePointer": "syft_core.pointers.callable_pointer:CallablePointer",
    "MultiPointerTensor": "syft_core.pointers.multi_pointer:MultiPointerTensor",
    "ObjectPointer": "syft_core.pointers.object_pointer:ObjectPointer",
    "ObjectWrapper": "syft_core.pointers.callable_pointer:ObjectWrapper",
    "PointerTensor": "syft_core.pointers.pointer_tensor:PointerTensor",
    "PrivateTensor": "syft_core.tensors.private:PrivateTensor",
    "Column": "syft_core.tensors.schema:Column",
    "Schema": "syft_core.tensors.schema:Schema",
    "combine_pointers": "syft_core.pointers.multi_pointer:combine_pointers",
    "create_callable_pointer": "syft_core.pointers.callable_pointer:create_callable_pointer",
    "revealing": "syft_core.pointers.revealing:revealing",
    "trace": "syft_core.workers.seeing.trace:trace",
    "tracebacks": "syft_core.notebooks:tracebacks",
    "unless_private": "syft_core.workers.seeing.permissions:unless_private",
    "only_published": "syft_core.workers.seeing.permissions:only_published",
    "nothing": "syft_core.workers.seeing.permissions:nothing",
    "get_all": "syft_core.pointers.travel:get_all",
    "load_backend": "syft_core.plugins.manager:load_backend",
    "overloaded": "syft_core.hook.overload:overloaded",
}
# Values that change while a program runs, and are therefore looked up each time.
_CURRENT = {
    "local_worker": "syft_core.hook.hook:current_worker",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return globals().setdefault(name, _resolve_name(_NAMES[name]))
    if name in _CURRENT:
        return _resolve_name(_CURRENT[name])()
    if name == "__version__":
        return _resolve_name("importlib.metadata:version")("syft-core")
    if name.startswith("_"):
        raise AttributeError(name)
    if _find_spec(f"syft_core.{name}") is not None:
        return _import_module(f"syft_core.{name}")
    attached = _resolve_name("syft_core.hook.hook:attached_hook")(name)
    if attached is not None:
        return attached.attributes
    manager = _resolve_name("syft_core.plugins.manager:plugin_manager")()
    exported = manager.export(name)
    if exported is not None:
        return globals().setdefault(name, exported)
    near = _resolve_name("difflib:get_close_matches")(name, __dir__(), n=1)
    broken = "".join(f"\n  {error}" for error in manager.failures.values())
    raise AttributeError(
        f"cannot find {name!r} in syft_core: neither the core nor an installed plugin has it; "
        f"{f'did you mean `sy.{near[0]}`? ' if near else ''}`syft-core plugins` lists the backends{broken}"
    )


def __dir__() -> list[str]:
    exports = _resolve_name("syft_core.plugins.manager:plugin_manager")().list_exports()
    return sorted({*_NAMES, *_CURRENT, *exports})
