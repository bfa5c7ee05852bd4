"""The conformance suite finds what is wrong with a backend, and names the method to fix."""

from __future__ import annotations

import inspect
import itertools
import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import syft_toy.attributes as facts
import toy
from syft_toy.attributes import ToyAttributes
from syft_toy.hook import ToyHook
from syft_toy.serde import CODECS
from syft_toy.wrapper import Wrapper

from syft_core.exceptions import SyftError
from syft_core.hook.attributes import FrameworkAttributes, Op, describe_op
from syft_core.hook.chain import end_of
from syft_core.hook.facts import Facts
from syft_core.hook.forms import Form, Inferred, form
from syft_core.hook.rules import leaves, map_leaves
from syft_core.serde import codecs
from syft_core.testing.calls import collect_calls
from syft_core.testing.chains import ChainSection, LayerSection
from syft_core.testing.disclosure import DisclosureSection
from syft_core.testing.forms import FormSection
from syft_core.testing.hooking import HookSection
from syft_core.testing.op_table import OpTableSection, SpellingSection
from syft_core.testing.pointers import PointerSection
from syft_core.testing.private_data import PrivateDataSection
from syft_core.testing.section import Bob, ConformanceError, Section
from syft_core.testing.serde import SerdeSection

from .test_conformance import Toy, install

VECTOR, CHAIN = CODECS
SECTIONS = (
    *(HookSection, OpTableSection, SpellingSection, ChainSection, LayerSection),
    *(SerdeSection, FormSection, PointerSection, DisclosureSection, PrivateDataSection),
)


original_facts, original_describe = ToyAttributes._facts, ToyAttributes._describe
original_methods, original_collect = ToyAttributes._methods, ToyAttributes._collect
original_infer = ToyAttributes.infer


@dataclass(frozen=True)
class Mutation:
    """One defect of the toy backend."""

    section: type[Section]
    """The section that must fail."""
    fix: str
    """The method that its message must name."""
    target: Any
    name: str
    value: Any
    """The replacement for the attribute of ``target`` with this name."""


def describe_with(**changes: Any) -> Any:
    """Return a ``_facts`` that changes some facts about the operations that run on workers."""

    def describe(self: ToyAttributes, op: Op) -> Facts:
        known = original_facts(self, op)
        return known if known.tier == "off" else replace(known, **changes)

    return describe


def describe_partial_with(**changes: Any) -> Any:
    """Return a ``_facts`` that marks operations that fail on some values as reviewed."""

    def describe(self: ToyAttributes, op: Op) -> Facts:
        known = original_facts(self, op)
        return (
            replace(known, tier="reviewed", discloses="nothing", **changes) if op.operation in facts.PARTIAL else known
        )

    return describe


def without(*names: str) -> Any:
    """Return a ``_methods`` without some names."""
    return lambda self: {name: op for name, op in original_methods(self).items() if name not in names}


def reading_is_allowed(self: ToyAttributes, op: Op) -> Facts:
    known = original_facts(self, op)
    return replace(known, reveals=False, tier="public") if known.reveals else known


def collect_also_files(self: ToyAttributes) -> Iterator[Op]:
    yield from original_collect(self)
    yield self._describe("toy.save", toy.save, "function")


def collect_half(self: ToyAttributes) -> Iterator[Op]:
    return (op for op in original_collect(self) if op.operation != "add")


def describe_without_synonyms(self: ToyAttributes, name: str, function: Any, spelling: Any) -> Op:
    made = original_describe(self, name, function, spelling)
    return describe_op(name, function, spelling, inplace=made.inplace, synonyms={}, describe=made.describe)


def describe_guarded(self: ToyAttributes, name: str, function: Any, spelling: Any) -> Op:
    made = original_describe(self, name, function, spelling)
    return replace(made, run=negate_no_zeros) if made.operation == "neg" else made


def negate_no_zeros(vector: toy.Vector) -> toy.Vector:
    """Raise an error of this library depending on values; the core assumes that such errors do not depend on values."""
    if 0.0 in vector:
        raise SyftError("cannot negate zero")
    return -vector


def infer_first_operand(self: ToyAttributes, op: Op, args: Any, kwargs: Any) -> Any:
    given = [leaf for leaf in leaves((args, kwargs)) if type(leaf) is Form]
    return Inferred(given[0], given)


def infer_other_operands(self: ToyAttributes, op: Op, args: Any, kwargs: Any) -> Any:
    inferred = original_infer(self, op, args, kwargs)
    return inferred and inferred._replace(after=[form((9,), (1,), int) for _ in inferred.after])


def go_around(self: Wrapper, function: Any, args: Any, kwargs: Any) -> Any:
    """Compute on the data itself, like a framework that bypasses the wrapper."""
    args, kwargs = map_leaves(lambda leaf: end_of(leaf) if isinstance(leaf, Wrapper) else leaf, (args, kwargs))
    return function(*args, **kwargs)


def install_for_good(self: ToyHook, patches: Any) -> None:
    toy.left_behind = object()


MUTATIONS = {
    # the hook
    "the hook leaves a trace": Mutation(HookSection, "FrameworkHook._install", ToyHook, "_install", install_for_good),
    "layers have no protocol": Mutation(
        LayerSection, "FrameworkHook._install", ToyHook, "_install", lambda self, patches: None
    ),
    "made tensors are wrappers": Mutation(
        HookSection, "create_tensor", ToyHook, "create_tensor", lambda self, data: Wrapper(toy.Vector(data))
    ),
    "zeros are ones": Mutation(
        HookSection, "create_zeros", ToyHook, "create_zeros", lambda self, *shape, **_kw: toy.Vector([1.0] * shape[0])
    ),
    "wrappers of anything": Mutation(
        HookSection, "create_wrapper", ToyHook, "create_wrapper", lambda self, wrapper_type=None: toy.Vector([])
    ),
    # the op table
    "files may be written": Mutation(
        OpTableSection, "FrameworkAttributes._collect", ToyAttributes, "_collect", collect_also_files
    ),
    "commands without the framework's name": Mutation(
        OpTableSection,
        "FrameworkAttributes._collect",
        ToyAttributes,
        "_describe",
        lambda self, name, *rest: original_describe(self, f"_{name}", *rest),
    ),
    "everything is in place": Mutation(
        OpTableSection,
        "FrameworkAttributes.inplace_methods",
        ToyAttributes,
        "inplace_methods",
        frozenset({"__index__", "__iadd__"}),
    ),
    "no comparison": Mutation(
        ChainSection, "FrameworkAttributes._methods", ToyAttributes, "_methods", without("__lt__", "__ge__")
    ),
    "no operator in the list of methods": Mutation(
        OpTableSection, "FrameworkAttributes._methods", ToyAttributes, "_methods", without("__sub__")
    ),
    "no addition": Mutation(SpellingSection, "FrameworkAttributes._collect", ToyAttributes, "_collect", collect_half),
    "no synonyms": Mutation(
        SpellingSection, "describe_op(synonyms=...)", ToyAttributes, "_describe", describe_without_synonyms
    ),
    # chains
    "functions go around chains": Mutation(
        SpellingSection, "the wrapper's protocol method", Wrapper, "__toy_function__", go_around
    ),
    "chains can be pickled": Mutation(
        ChainSection, "__reduce_ex__", Wrapper, "__reduce_ex__", lambda self, _protocol: (Wrapper, (None,))
    ),
    "operators in place are unmarked": Mutation(
        DisclosureSection, "describe_op(inplace=...)", ToyAttributes, "inplace_methods", frozenset()
    ),
    "operators in place make new objects": Mutation(
        ChainSection, "FrameworkAttributes._collect", ToyAttributes, "_methods", without("__iadd__")
    ),
    # serde
    "nothing travels": Mutation(SerdeSection, "the codec of your tensor type", codecs, "toy", ()),
    "chains do not travel": Mutation(SerdeSection, "the codec of your wrapper", codecs, "toy", (VECTOR,)),
    "numbers lose their type": Mutation(
        SerdeSection,
        "the codec of your tensor type",
        codecs,
        "toy",
        (replace(VECTOR, detail=lambda payload, _context: toy.Vector([float(v) for v in payload[1]])), CHAIN),
    ),
    "tensors are read without a check": Mutation(
        SerdeSection,
        "raise SerdeError",
        codecs,
        "toy",
        (replace(VECTOR, detail=lambda payload, _context: toy.Vector(payload[1])), CHAIN),
    ),
    "a tensor arrives twice": Mutation(
        SerdeSection, "Codec(shared=True)", codecs, "toy", (replace(VECTOR, shared=False), CHAIN)
    ),
    "no result types": Mutation(SerdeSection, "FrameworkAttributes.result_types", ToyAttributes, "result_types", {}),
    # forms
    "wrong forms": Mutation(
        FormSection,
        "FrameworkAttributes.form_of",
        ToyAttributes,
        "form_of",
        lambda self, tensor: form((len(tensor) + 1,), (1,), tensor.dtype),
    ),
    "forms hold values": Mutation(
        FormSection,
        "FrameworkAttributes.form_of",
        ToyAttributes,
        "form_of",
        lambda self, tensor: form(tensor.shape, (1,), tensor.dtype, tuple(tensor.tolist())),
    ),
    "forms without a dtype": Mutation(
        FormSection,
        "FrameworkAttributes.form_of",
        ToyAttributes,
        "form_of",
        lambda self, tensor: form(tensor.shape, (1,), float),
    ),
    "copies of another form": Mutation(
        FormSection,
        "FrameworkAttributes.form_of_copy",
        ToyAttributes,
        "form_of_copy",
        lambda self, tensor: form(tensor.shape, (2,), tensor.dtype),
    ),
    "wrong inference": Mutation(FormSection, "FrameworkAttributes.infer", ToyAttributes, "infer", infer_first_operand),
    "wrong inference of what changes": Mutation(
        FormSection, "FrameworkAttributes.infer", ToyAttributes, "infer", infer_other_operands
    ),
    "wrong inference, by wire": Mutation(
        PointerSection, "FrameworkAttributes.infer", ToyAttributes, "infer", infer_first_operand
    ),
    "wrong facts of forms": Mutation(
        FormSection,
        "FrameworkAttributes.answer_from_form",
        ToyAttributes,
        "answer_from_form",
        lambda self, op, form, args: 0,
    ),
    "a value as a fact of forms": Mutation(
        FormSection, "FrameworkAttributes.facts_of_form", ToyAttributes, "facts_of_form", frozenset({"shape", "sum"})
    ),
    # pointers
    "workers share memory": Mutation(
        PointerSection, "FrameworkAttributes.transfer", ToyAttributes, "transfer", lambda self, tensor: tensor
    ),
    "nothing becomes another": Mutation(
        PointerSection,
        "FrameworkAttributes.replace_in_place",
        ToyAttributes,
        "replace_in_place",
        lambda self, tensor, other: None,
    ),
    "no creators": Mutation(PointerSection, "FrameworkAttributes.worker_methods", ToyAttributes, "worker_methods", ()),
    "reads allowed": Mutation(PointerSection, "Facts.reveals", ToyAttributes, "_facts", reading_is_allowed),
    # disclosure
    "nothing reveals": Mutation(DisclosureSection, "Facts.reveals", facts, "REVEALS", frozenset()),
    "nothing is local": Mutation(DisclosureSection, "Facts.local", facts, "LOCAL", frozenset()),
    "nothing is described": Mutation(
        DisclosureSection, "Facts.tier", ToyAttributes, "_facts", lambda self, op: Facts()
    ),
    "reviewed without facts": Mutation(
        DisclosureSection, "Facts.tier", ToyAttributes, "_facts", lambda self, op: Facts(tier="reviewed")
    ),
    "changes are not declared": Mutation(
        DisclosureSection, "Facts.writes", ToyAttributes, "_facts", describe_with(writes=frozenset())
    ),
    "masks disclose nothing": Mutation(
        DisclosureSection, "form_depends", ToyAttributes, "_facts", describe_with(form_depends=None)
    ),
    "nothing can fail": Mutation(
        DisclosureSection, "Facts.partial", ToyAttributes, "_facts", describe_partial_with(partial=False)
    ),
    "copies share memory": Mutation(
        DisclosureSection, "FrameworkAttributes.copy", ToyAttributes, "copy", lambda self, tensor: tensor
    ),
    "no memory identity": Mutation(
        DisclosureSection,
        "FrameworkAttributes.memory_of",
        ToyAttributes,
        "memory_of",
        lambda self, tensor: frozenset((id(object()),)),
    ),
    "one memory for all": Mutation(
        DisclosureSection,
        "FrameworkAttributes.memory_of",
        ToyAttributes,
        "memory_of",
        lambda self, tensor: frozenset((0,)),
    ),
    # private data
    "unknown memory": Mutation(
        PrivateDataSection, "FrameworkAttributes.memory_of", ToyAttributes, "memory_of", lambda self, tensor: None
    ),
    "no shadows": Mutation(
        PrivateDataSection, "FrameworkAttributes.shadow", ToyAttributes, "shadow", FrameworkAttributes.shadow
    ),
    "shadows of another form": Mutation(
        PrivateDataSection,
        "FrameworkAttributes.shadow",
        ToyAttributes,
        "shadow",
        lambda self, argument, device: toy.Vector([1]) if type(argument) is Form else argument,
    ),
    "zeros of another form": Mutation(
        PrivateDataSection,
        "FrameworkAttributes.zeros",
        ToyAttributes,
        "zeros",
        lambda self, forms, operands: [toy.Vector([0]) for _ in forms],
    ),
    "nothing is overwritten": Mutation(
        PrivateDataSection,
        "FrameworkAttributes.overwrite",
        ToyAttributes,
        "overwrite",
        lambda self, target, value: None,
    ),
    "failures are told": Mutation(PrivateDataSection, "Facts.partial", ToyAttributes, "_describe", describe_guarded),
    "nothing is reviewed": Mutation(
        PrivateDataSection, "Facts.tier", ToyAttributes, "_facts", describe_with(tier="public")
    ),
}


@contextmanager
def apply(mutation: Mutation) -> Iterator[type[ToyHook]]:
    """Break the toy backend, and yield its hook."""
    with ExitStack() as stack:
        if mutation.target is codecs:
            stack.enter_context(send_forms_as(mutation.value))
        else:
            stack.enter_context(patch.object(mutation.target, mutation.name, mutation.value))
        attributes = ToyAttributes(toy)
        stack.enter_context(install(attributes))
        yield type("BrokenHook", (ToyHook,), {"_make_attributes": lambda _self: attributes})


@contextmanager
def send_forms_as(known: Any) -> Iterator[None]:
    """Replace the codecs of toy."""
    tables = codecs.by_type._entries, codecs._by_code
    before = [dict(table) for table in tables]
    for codec in CODECS:
        del tables[0][codec.type], tables[1][codec.code]
    for codec in known:
        codecs.register(codec)
    codecs.resolved.clear()
    try:
        yield
    finally:
        for table, entries in zip(tables, before, strict=True):
            table.clear()
            table.update(entries)
        codecs.resolved.clear()


def failures(section: type[Section], hook_class: type[ToyHook]) -> list[str]:
    """Run the checks of a section as pytest does, and return the messages of those that fail."""
    suite: Any = type("Suite", (Toy, section), {"hook_class": hook_class})
    with suite.attach_hook() as hook:
        calls = collect_calls(hook)
    found = []
    for name in dir(suite):
        if name.startswith("test_"):
            for arguments in alternatives(getattr(suite, name)):
                found += run_check(suite, getattr(suite(), name), {"calls": calls, **arguments})
    return found


def alternatives(check: Any) -> Iterator[dict[str, Any]]:
    """Yield the parameter sets of a check."""
    values = {mark.args[0]: mark.args[1] for mark in getattr(check, "pytestmark", ()) if mark.name == "parametrize"}
    if {"bob", "secret"} & set(inspect.signature(check).parameters):
        values["serialize"] = [False, True]
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def run_check(suite: Any, check: Any, known: dict[str, Any]) -> list[str]:
    """Run one check, with the hook if it needs one; return its message if it fails."""
    names = inspect.signature(check).parameters
    with ExitStack() as stack:
        if {"hook", "plain", "other", "bob", "secret"} & set(names):
            hook = stack.enter_context(suite.attach_hook())
            known |= {"hook": hook, "plain": hook.create_tensor([1.0, 2.0, 4.0])}
            known["other"] = hook.create_tensor([3.0, 5.0, 2.0])
            known["bob"] = Bob(hook, id="bob", serialize=known.get("serialize", False))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            if "secret" in names:
                known["secret"] = check.__self__.send_secret(known["bob"], [1.0, 2.0, 4.0])
            check(**{name: known[name] for name in names})
        except ConformanceError as error:
            return [str(error)]
        except pytest.skip.Exception:
            pass
    return []


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_backend_fails_a_check_that_names_the_method_to_fix(name: str) -> None:
    mutation = MUTATIONS[name]

    with apply(mutation) as hook_class:
        found = failures(mutation.section, hook_class)
    vars(toy).pop("left_behind", None)

    assert found, f"no check of {mutation.section.__name__} fails"
    assert any(mutation.fix in message.rpartition("; fix ")[2] for message in found), found


@pytest.mark.parametrize("section", SECTIONS)
def test_the_intact_backend_has_no_failures(section: type[Section]) -> None:
    assert failures(section, ToyHook) == []


def test_every_check_names_methods_that_the_guide_explains() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "backends.md").read_text(encoding="utf-8")
    checks = [check for section in SECTIONS for name, check in vars(section).items() if name.startswith("test_")]

    named = {fix for check in checks for fix in check.fixes}
    lacking = [fix for fix in named if re.findall(r"\w+", fix.partition(" (")[0])[-1] not in guide]

    assert len(checks) > 60
    assert lacking == []


def test_every_section_has_enough_mutations() -> None:
    assert len(MUTATIONS) >= 24
    assert {mutation.section for mutation in MUTATIONS.values()} == set(SECTIONS)
