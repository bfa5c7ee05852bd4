from __future__ import annotations

import inspect
import re

import pytest

from syft_core import exceptions
from syft_core.exceptions import SyftError

CLASSES = {
    name: cls
    for name, cls in vars(exceptions).items()
    if inspect.isclass(cls) and issubclass(cls, Exception) and cls.__module__ == exceptions.__name__
}

# Every way to write a message, with the whole text it gives.
TEXTS = {
    ("AlreadyRegisteredError", "of"): (
        ("table", "'key'"),
        "cannot register 'key' in 'table': it is registered already and entries are written once; "
        "register it in one place only, or use another type",
    ),
    ("NotRegisteredError", "of"): (
        ("table", "'key'", ["'kay'", "'keys'"], "add it"),
        "cannot find 'key' in 'table': it is not registered; did you mean 'kay' or 'keys'? otherwise add it",
    ),
    ("DependencyError", "missing"): (
        ("toy", "toylib", "pip install toylib"),
        "cannot load the 'toy' backend: 'toylib' is not installed; run `pip install toylib`",
    ),
    ("PluginError", "broken"): (
        ("acme", "it has no wheels"),
        "cannot use the plugin 'acme': it has no wheels; `syft-core plugins` lists all of them, "
        "the others keep working",
    ),
    ("NotTheFrameworkError", "received"): (
        ("ToyHook", "toy", exceptions),
        "cannot hook 'syft_core.exceptions': ToyHook takes the toy module itself; "
        "write `import toy` and `ToyHook(toy)`",
    ),
    ("OperationNotAllowedError", "not_in_table"): (
        ("toy", "toy.savee", ["toy.save"]),
        "cannot run 'toy.savee' on a chain: it is not in the toy op table, which lists what may run; use toy.save, "
        "or add it with `hook.attributes.allow(function)`, for public data only unless you describe what it does",
    ),
    ("OperationNotAllowedError", "reviewed_without_facts"): (
        ("toy.double",),
        "cannot allow 'toy.double' on private data: nobody said that it discloses nothing, which arguments it changes "
        'and that it reads nothing else; pass `discloses="nothing"`, `writes=frozenset()` (or the arguments) and '
        "`reads_beyond=False` if that is so, or leave out `tier`",
    ),
    ("OperationNotAllowedError", "refused_by"): (
        ("PrivateTensor", "toy.item", "its values may not leave; ask its owner"),
        "cannot run 'toy.item' on a PrivateTensor: its values may not leave; ask its owner",
    ),
    ("OperationNotAllowedError", "without_rule"): (
        ("FixedTensor", "toy.exp", "exp", False),
        "cannot run 'toy.exp' on a FixedTensor: the layer has no rule for it and its encoding is not the values; "
        "decode the tensor first, or give FixedTensor a rule called 'exp'",
    ),
    ("OperationNotAllowedError", "no_numeric_wrapper"): (
        ("toy",),
        "cannot wrap this chain: a layer in it encodes values, and the toy backend has no numeric wrapper; "
        "use the layer without a wrapper, `layer.on(x, wrap=False)`, or another backend",
    ),
    ("MixedLayersError", "plain"): (
        ("FixedTensor",),
        "cannot mix a FixedTensor with a plain tensor: FixedTensor does not encode operands by itself; "
        "put the plain tensor under the same layers first",
    ),
    ("MixedLayersError", "wrappers"): (
        ("toy.add",),
        "cannot run 'toy.add': one operand is encoded by a numeric layer and another one is not; "
        "put both under the same layers first",
    ),
    ("MixedLayersError", "frameworks"): (
        ("toy.add", "toy", "blocks"),
        "cannot run 'toy.add': it mixes a toy wrapper with a blocks wrapper, and no framework computes with both; "
        "convert one of them to the other framework first",
    ),
    ("MixedLayersError", "between"): (
        ("toy.add", "ThisTensor", "ThatTensor"),
        "cannot run 'toy.add': it mixes a ThisTensor with a ThatTensor, and neither may look into the other; "
        "put both operands under the same layers first, e.g. `ThisTensor().on(x)` for the other operand",
    ),
    ("MixedLayersError", "attributes"): (
        ("toy.add", "ScaledTensor", {"scale", "base"}),
        "cannot run 'toy.add': it mixes two ScaledTensors that differ in base, scale; "
        "create both operands with the same base, scale",
    ),
    ("WrapperLeakError", "at"): (
        ("pickle", "save the data instead"),
        "cannot run pickle on a wrapper: a wrapper holds no data of its own; save the data instead",
    ),
    ("PlanMismatchError", "arity"): (
        (2, 3),
        "cannot apply a plan for 2 argument(s) to 3: plans are exact; build one for this signature",
    ),
    ("PlanMismatchError", "slot"): (
        ("int", "str"),
        "cannot apply a plan for a int to a str: plans are exact; build one for this signature",
    ),
    ("PureFrameworkTensorFoundError", "in_call"): (
        ("toy.add",),
        "cannot unwrap the arguments of 'toy.add': none of them has a child; call the framework's own function",
    ),
    ("DomainError", "outside"): (
        ("exp", -10.0, 10.0),
        "cannot approximate 'exp': a value lies outside [-10, 10]; "
        "scale the input into that interval or add a piece for it",
    ),
    ("IdNotUniqueError", "of"): (
        ("bob",),
        "cannot use the id 'bob': it is taken; leave it out to get a fresh one",
    ),
    ("AlreadyRetrievedError", "because"): (
        ("[a pointer]", "it was fetched by 'me'"),
        "cannot use [a pointer]: it was fetched by 'me'; use what it returned, or fetch a copy with `.copy().get()` "
        "next time",
    ),
    ("WorkerNotFoundError", "named"): (
        ("bub", ["bob"]),
        "cannot find worker 'bub': nobody here knows it; did you mean 'bob'? otherwise create it first, or pass the "
        "worker itself",
    ),
    ("WorkerIdTakenError", "by"): (
        ("bob", "VirtualWorker"),
        "cannot create worker 'bob': a VirtualWorker has this id; choose another id",
    ),
    ("WorkerIdTakenError", "differs"): (
        ("bob", "serialize"),
        "cannot create worker 'bob': there is one with this id and another 'serialize'; leave the option out to use "
        "that worker, or choose another id",
    ),
    ("LocalWorkerConflictError", "differs"): (
        ("toy", "bob", "me", ["torch", "numpy"]),
        "cannot hook toy with the local worker 'bob': all hooks of a process share one, and another worker, 'me', is "
        "in use; leave `local_worker` out, or unhook torch and numpy first",
    ),
    ("LocalWorkerConflictError", "is_client"): (
        ("toy", "me", ["torch"]),
        "cannot hook toy with `is_client=False`: all hooks of a process share the local worker 'me', which is a "
        "client; leave `is_client` out, or unhook torch and give `is_client=False` to the first hook",
    ),
    ("NotCollocatedError", "between"): (
        ("toy.add", "bob", "alice"),
        "cannot run 'toy.add': its arguments live on 'bob' and 'alice'; bring them together first, e.g. `x.move(bob)`",
    ),
    ("NotCollocatedError", "local"): (
        ("toy.add", "bob"),
        "cannot run 'toy.add': its arguments live on 'bob' and in this process; send the local one, e.g. "
        "`y.send(bob)`, or fetch the other",
    ),
    ("GetNotPermittedError", "to"): (
        ("eve", 7, "bob", "it is private"),
        "cannot get object 7 from worker 'bob' as 'eve': it is private; ask its owner to allow you",
    ),
    ("SendNotPermittedError", "by"): (
        ("eve", ["ann", "al"]),
        "cannot send a private tensor as 'eve': its owner allows al, ann; send it as one of them",
    ),
    ("TagNotPermittedError", "to"): (
        ("eve", 7, "bob"),
        "cannot tag or describe object 7 on worker 'bob' as 'eve': it is somebody else's; tag a copy, e.g. "
        "`p.copy().tag(...)`, or ask its owner",
    ),
    ("OperationFailedError", "on_the_way_to"): (
        (7, "bob", ["toy.log that failed with ValueError", "toy.index that failed with IndexError"]),
        "cannot get object 7 from worker 'bob': it was computed with toy.index that failed with IndexError, toy.log "
        "that failed with ValueError, which whoever ran it was not told, because that tells of private values; compute "
        "it anew from values for which the operation works",
    ),
    ("OperationNotAllowedError", "off"): (
        ("toy.crash",),
        "cannot run 'toy.crash' on a worker: with some arguments it crashes the process, or reads memory that is not "
        "its own; use another operation (for a fused optimizer, its list form: `foreach=True`)",
    ),
    ("ValueRefusedError", "unreviewed"): (
        ("toy.nonzero", "bob"),
        "cannot run 'toy.nonzero' on 'bob': it was not reviewed for use next to data that you may not have, and there "
        "is some; use a reviewed operation (docs/security.md), or ask the owner of the data",
    ),
    ("ValueRefusedError", "undecided"): (
        ("toy.index", "bob"),
        "cannot run 'toy.index' on a pointer: without values at 'bob' that you may not have, nobody can say what it "
        "gives; use another operation, or ask the owner to run it",
    ),
    ("ValueRefusedError", "of"): (
        ("toy.item", "bob"),
        "cannot run 'toy.item' on a pointer: it would bring a value from 'bob' here unnoticed; fetch it with `.get()`, "
        'or a copy with `.copy().get()`, or consent with `with sy.revealing("why"):`; the worker decides and records '
        "it",
    ),
    ("ValueRefusedError", "without_reason"): (
        (),
        "cannot reveal values: no reason was given, and the ledger of each worker keeps one for every value; say what "
        'you read them for, e.g. `with sy.revealing("line search"):`',
    ),
    ("ValueRefusedError", "only_local"): (
        ("toy.apply", "bob"),
        "cannot run 'toy.apply' on a pointer: it takes code, shares memory or hands out objects of the process at "
        "'bob'; fetch the tensor with `.get()` first",
    ),
    ("ValueRefusedError", "form"): (
        ("toy.nonzero", "bob"),
        "cannot run 'toy.nonzero' on a pointer: the shape of its result depends on values at 'bob' that you may not "
        "have; use an operation with a fixed shape, e.g. `torch.where(mask, x, 0)` instead of `x[mask]`",
    ),
    ("ValueRefusedError", "beyond"): (
        ("toy.as_strided", "bob"),
        "cannot run 'toy.as_strided' on a pointer: the tensor at 'bob' is a part of a larger one, into which the "
        "operation could look; run it on a copy, e.g. `p.clone()`",
    ),
    ("ValueRefusedError", "failed"): (
        ("toy.index", "bob", "IndexError"),
        "cannot run 'toy.index' on a pointer: it raised a IndexError at 'bob', whose text may quote values that you "
        "may not have; check shapes, dtypes and ranges, or ask the owner",
    ),
    ("NotCollocatedError", "change"): (
        ("toy.add_", "bob"),
        "cannot run 'toy.add_': it would change a tensor of this process with one on 'bob', which would bring values "
        "here unnoticed; fetch that one with `.get()` first, or send the local one",
    ),
    ("SendNotPermittedError", "claimed"): (
        ("ann", "me"),
        "cannot send as 'ann': the sender is 'me', and a claimed user name is not authentication; "
        "leave `user` out, or set the `user` of "
        "the local worker",
    ),
    ("InvalidTensorForRemoteGetError", "on"): (
        (7, "bob"),
        "cannot get what object 7 on worker 'bob' points to: it is no pointer, the data is there; "
        "fetch it with `.get()`",
    ),
    ("ObjectNotFoundError", "on"): (
        (7, "bob"),
        "cannot find object 7 on worker 'bob': it was never stored there or is gone; "
        "keep a pointer to what you still need",
    ),
}
CONSTRUCTED = {
    "RemoteObjectFoundError": (
        exceptions.RemoteObjectFoundError("a pointer"),
        "cannot unwrap a pointer: its object lives on another worker; send the command there",
    ),
    "ResponseSignatureError": (
        exceptions.ResponseSignatureError([1, 2]),
        "cannot register a response: it has more tensors than ids were given; give one id for each tensor",
    ),
}


def writers() -> set[tuple[str, str]]:
    return {
        (name, method)
        for name, cls in CLASSES.items()
        for method, function in vars(cls).items()
        if isinstance(function, classmethod)
    }


def drawn_tree() -> dict[str, str]:
    """Map each class in the docstring's drawing to the class it hangs from."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (exceptions.__doc__ or "").splitlines():
        drawn = re.match(r"^    ([│ ]*)(?:[├└]── )?(\w+Error)\b", line)
        if drawn:
            depth = 0 if line.startswith("    SyftError") else len(drawn[1]) // 4 + 1
            path[depth:] = [drawn[2]]
            parents[drawn[2]] = path[depth - 1] if depth else ""
    return parents


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_error_is_a_syft_error(name: str) -> None:
    assert issubclass(CLASSES[name], SyftError)


def test_the_drawn_tree_is_the_real_one() -> None:
    real = {name: "" if cls is SyftError else cls.__bases__[0].__name__ for name, cls in CLASSES.items()}

    assert drawn_tree() == real


def test_the_drawing_names_the_builtin_errors_that_a_class_also_is() -> None:
    drawn = {
        name: set(re.findall(r"\w+Error", also))
        for name, also in re.findall(r"(\w+Error) +\(also an? ([^)]*)\)", exceptions.__doc__ or "")
    }
    real = {
        name: {base.__name__ for base in cls.__bases__[1:]} for name, cls in CLASSES.items() if len(cls.__bases__) > 1
    }

    assert drawn == real


def test_every_writer_of_a_message_has_its_text_here() -> None:
    assert writers() == set(TEXTS)


@pytest.mark.parametrize(("name", "method"), sorted(TEXTS))
def test_the_text_is_exactly(name: str, method: str) -> None:
    arguments, text = TEXTS[name, method]

    error = getattr(CLASSES[name], method)(*arguments)

    assert type(error) is CLASSES[name]
    assert str(error) == text


@pytest.mark.parametrize("name", sorted(CONSTRUCTED))
def test_the_text_of_an_error_that_carries_something_is_exactly(name: str) -> None:
    error, text = CONSTRUCTED[name]

    assert str(error) == text


def test_every_text_says_what_cannot_be_done_why_and_what_to_do() -> None:
    texts = [text for _, text in (*TEXTS.values(), *CONSTRUCTED.values())]

    for text in texts:
        assert re.fullmatch(r"cannot .+?: .+; .+", text), text
        assert text[-1] not in ".!"


def test_hints_are_left_out_when_nothing_is_near() -> None:
    lacking = exceptions.NotRegisteredError.of("table", "'key'", [], "add it")
    refused = exceptions.OperationNotAllowedError.not_in_table("toy", "toy.x", [])

    assert str(lacking) == "cannot find 'key' in 'table': it is not registered; add it"
    assert "which lists what may run; add it with" in str(refused)


def test_something_without_a_name_is_called_by_its_type() -> None:
    error = exceptions.NotTheFrameworkError.received("ToyHook", "toy", 3)

    assert str(error).startswith("cannot hook 'int': ")


def test_the_pointer_and_the_ids_travel_with_their_errors() -> None:
    pointer = object()

    assert exceptions.RemoteObjectFoundError(pointer).pointer is pointer
    assert exceptions.ResponseSignatureError(iter([1, 2])).ids_generated == [1, 2]
    assert exceptions.ResponseSignatureError().ids_generated == []


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("NotRegisteredError", LookupError),
        ("DependencyError", ImportError),
        ("NotTheFrameworkError", TypeError),
        ("OperationNotAllowedError", TypeError),
        ("OperationNotAllowedError", RuntimeError),
        ("MixedLayersError", TypeError),
        ("WrapperLeakError", RuntimeError),
        ("PlanMismatchError", AssertionError),
        ("DomainError", ValueError),
        ("IdNotUniqueError", ValueError),
        ("ObjectNotFoundError", LookupError),
        ("SerdeError", ValueError),
    ],
)
def test_what_python_programs_expect_to_catch_they_can_catch(name: str, builtin: type) -> None:
    assert issubclass(CLASSES[name], builtin)
