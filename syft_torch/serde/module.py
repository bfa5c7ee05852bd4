"""Codecs for modules: a registered class, its plain attributes, parameters, buffers and submodules; never code.

A module is rebuilt without running its constructor: its attributes are set on an empty module of the class. The modules
of ``torch.nn`` are registered; register your own class at both ends with ``register_module``.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType

import torch
from torch import nn

from syft_core.registry import Registry
from syft_core.serde import Codec, Context, SerdeError
from syft_core.serde.received import require
from syft_core.values import Function, Payload

_STATE = frozenset({"training", "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"})
_EMPTY = frozenset(vars(nn.Module())) - _STATE
# Recurrent layers keep additional references to their weights, which are recreated after loading.
_DERIVED = frozenset({"_flat_weights", "_flat_weight_refs"})

# Functions that torch's own modules store as attributes.
_FUNCTIONS = (
    "relu relu6 gelu silu elu selu celu leaky_relu hardtanh hardswish hardsigmoid mish tanh sigmoid softplus "
    "logsigmoid glu pairwise_distance cosine_similarity"
)
FUNCTIONS: dict[str, Function] = {
    f"{space}.{name}": found
    for space, known in (("functional", vars(nn.functional)), ("torch", vars(torch)))
    for name in _FUNCTIONS.split()
    if (found := known.get(name)) is not None
}
_FUNCTION_KEYS = {id(function): key for key, function in FUNCTIONS.items()}

modules: Registry[str, type[nn.Module]] = Registry("modules", advice="register its class with `register_module`")
_names: dict[type[nn.Module], str] = {}
_reserved: dict[type[nn.Module], frozenset[str]] = {}


@dataclass(frozen=True)
class ListedFunction:
    """Represents a function of the table in the payload of a module."""

    key: str


def register_module(cls: type[nn.Module], name: str) -> None:
    """Make modules of your class serializable under ``name``, which must be the same at both ends.

    Their attributes must be serializable too: numbers, text, containers, tensors, modules.
    """
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        raise SerdeError("cannot register a module class: it is not a subclass of torch.nn.Module; pass the class")
    modules.register(name, cls)
    _names[cls] = name
    members = [member for base in cls.__mro__ for member in vars(base).items()]
    _reserved[cls] = frozenset(name for name, value in members if callable(value)) | _EMPTY


def simplify_module(module: nn.Module, _: Context) -> tuple[object, ...]:
    """Return the payload of a module."""
    name = _names.get(type(module))
    if name is None:
        cls = type(module)
        raise SerdeError(
            f"cannot serialize a {cls.__module__}.{cls.__qualname__}: its class is not registered; "
            f"register it at both ends with `syft_torch.serde.register_module({cls.__name__}, {cls.__name__!r})`, "
            f"or send `module.state_dict()`"
        )
    own = vars(module)
    hooks = sorted(key for key in _EMPTY if own.get(key))
    if hooks:
        raise SerdeError(
            f"cannot serialize a {type(module).__name__}: hooks are code and cannot be sent ({', '.join(hooks)}); "
            f"remove them, or send `module.state_dict()`"
        )
    config = {
        key: _replace_function(value, type(module))
        for key, value in own.items()
        if key not in _STATE and key not in _EMPTY and key not in _DERIVED
    }
    hidden = sorted(own["_non_persistent_buffers_set"])
    children = dict(own["_modules"])
    return name, own["training"], dict(own["_parameters"]), dict(own["_buffers"]), hidden, children, config


def detail_module(payload: Payload, _: Context) -> nn.Module:
    """Rebuild a module of a registered class."""
    name, training, parameters, buffers, hidden, children, config = payload
    cls = modules.get(name) if type(name) is str else None
    if cls is None:
        raise SerdeError(
            "cannot rebuild a module: its class is not registered here; register it at both ends with "
            "`syft_torch.serde.register_module(cls, name)`"
        )
    are_names = type(hidden) is list and all(type(key) is str for key in hidden)
    require(type(training) is bool and are_names, "a module: its state has a wrong type")
    kinds = (parameters, torch.Tensor), (buffers, torch.Tensor), (children, nn.Module), (config, object)
    for entries, kind in kinds:
        _check_entries(cls, entries, kind)
    module = object.__new__(cls)
    nn.Module.__init__(module)
    own = vars(module)
    own["training"] = training
    own["_parameters"].update(parameters)
    own["_buffers"].update(buffers)
    own["_modules"].update(children)
    own["_non_persistent_buffers_set"].update(hidden)
    for key, value in config.items():
        own[key] = FUNCTIONS[value.key] if type(value) is ListedFunction else value
    if isinstance(module, nn.RNNBase):
        module._init_flat_weights()
    return module


def _check_entries(cls: type[nn.Module], entries: object, kind: type) -> None:
    reserved = _reserved[cls]
    if type(entries) is not dict or not all(
        type(key) is str and not key.startswith("__") and key not in reserved and key not in _STATE for key in entries
    ):
        raise SerdeError(f"cannot rebuild a {cls.__name__}: an entry would hide a method; rename it")
    are_typed = all(value is None or isinstance(value, kind) for value in entries.values())
    require(are_typed, f"a {cls.__name__}: an entry is not a {kind.__name__}")


def _replace_function(value: object, cls: type) -> object:
    if not isinstance(value, FunctionType | BuiltinFunctionType):
        return value
    key = _FUNCTION_KEYS.get(id(value))
    if key is None:
        raise SerdeError(
            f"cannot serialize a {cls.__name__}: its attribute {value.__name__!r} is a function, and functions are "
            f"code; use a module instead, or send `module.state_dict()`"
        )
    return ListedFunction(key)


def _detail_function(payload: Payload, _: Context) -> ListedFunction:
    (key,) = payload
    if type(key) is not str or key not in FUNCTIONS:
        raise SerdeError("cannot rebuild a function: it is not in the table; upgrade the older end")
    return ListedFunction(key)


CODECS = (
    Codec(nn.Module, 161, simplify_module, detail_module, subclasses=True, shared=True),
    Codec(ListedFunction, 162, lambda function, _: (function.key,), _detail_function),
)

for _name, _class in {**vars(nn.modules.linear), **vars(nn)}.items():
    if isinstance(_class, type) and issubclass(_class, nn.Module) and _class is not nn.DataParallel:
        register_module(_class, f"torch.nn.{_name}")
