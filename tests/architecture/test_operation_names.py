"""The core and its features know no operation of one framework by name: backends register what it needs to know."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from syft_core.hook import operators
from syft_core.hook.attributes import Op
from syft_core.hook.forms import Form
from syft_mpc.approximations import FUNCTIONS

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from syft_numpy.attributes import NumpyAttributes  # noqa: E402
from syft_torch.aten import ATEN  # noqa: E402
from syft_torch.attributes import TorchAttributes  # noqa: E402

ROOT = Path(operators.__file__).parents[2]
PACKAGES = ("syft_core", "syft_mpc", "syft_worker", "syft_ray")
OF_BACKENDS = {"torch", "numpy"}
"""Folders of a feature that hold what it needs of one framework."""
COMPUTES = {"syft_mpc", "tensors", "testing", "demo"}
"""Folders that may name the operations that every framework has, such as add, exp and sum."""
NUMBERS = {name.strip("_") for name in dir(float)}
"""Python's special methods of numbers."""
IN_FILES = {
    "plans/program.py": NUMBERS,
    "plans/randomness.py": {"tolist"},  # the state of a generator
    "plans/recording.py": NUMBERS | {"dim", "ndimension", "size"},  # a rank and a length, as methods
    "plans/traced.py": NUMBERS | {"index"},
    "tensors/logging.py": {"relu"},  # an option that users know
    "tensors/numeric.py": {"copy_"},  # how autograd and optimizers write to any numeric layer
    "testing/transport.py": {"index_select", "unsqueeze_"},  # tests that other frameworks skip
}
"""Names that one file needs."""
OPERATORS = {
    name
    for table in (operators.OPERATORS, operators.COMPARATORS, operators.UNARY_OPERATORS, operators.SYNONYMS)
    for name in (*table, *table.values())
}
FORM = {*Form.__slots__, "ndim", "layout", "qscheme", "retains_grad"}
"""What can be said of a tensor without its values; some of it is an operation of a framework as well."""
OTHER_WORDS = {
    "alias": "a method of FrameworkAttributes",
    "bool": "a type in an annotation",
    "complex": "the beginning of the name of a dtype",
    "copy": "the label of an arrow in a picture",
    "cpu": "the device on which messages are read",
    "data": "the label of a box in a picture, an option of a worker",
    "detach": "a method of FrameworkAttributes",
    "empty": "the beginning of the names of functions without values",
    "encode": "a method of NumericTensor",
    "float": "the beginning of the name of a dtype",
    "fold": "a function of the core",
    "full": "how a notebook shows an object",
    "gradient": "a reason for the ledger",
    "int": "a type in an annotation",
    "lift": "a method of AbstractTensor",
    "long": "the ring of 64-bit integers, as users call it",
    "new": "the action of a command",
    "one_hot": "an option of argmax",
    "rand": "the beginning of the names of random functions",
    "short": "a kind of traceback",
    "stride": "an option of pooling",
    "sum": "how a result leaves a worker, and the field of a ledger's entry for that",
    "real": "a type of columns",
    "replace": "how Python writes characters that a terminal lacks",
    "title": "an element of a page",
    "to": "a column of the ledger",
    "trace": "a function of the core",
    "type": "a column of a schema",
    "values": "what an answer discloses",
    "select": "an element of a page",
    "histogram": "what the owner is shown of a value",
    "max": "the same",
    "mean": "the same",
    "min": "the same",
    "norm": "the same",
    "zeros": "the same",
}


def names_of(ops: Iterable[Op]) -> set[str]:
    names = {name for op in ops for name in (op.name, op.attr, op.operation)}
    return {name for name in names if len(name) > 1 and not (name.startswith("__") and name.endswith("__"))}


def kernels() -> Iterator[Op]:
    """Yield torch's kernels, which have names of their own, such as ``_softmax`` and ``nll_loss2d_backward``."""
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else ():
            yield ATEN.of(getattr(packet, overload))


def find_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module that are not documentation, the words in lists of names, and the names of rules."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("words", "frozenset"):
            lists = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            yield from ((node.lineno, word) for text in lists if isinstance(text, str) for word in text.split())
        elif isinstance(node, ast.FunctionDef) and any(
            ast.unparse(decorator).startswith("overloaded.") for decorator in node.decorator_list
        ):
            yield node.lineno, node.name


def find_operations(folder: Path) -> list[str]:
    """Return where files of a package name an operation that they should not know."""
    torch_names, numpy_names = names_of(TorchAttributes(torch).ops), names_of(NumpyAttributes(np).ops)
    names = torch_names | numpy_names | names_of(kernels())
    names -= OPERATORS | FORM | OTHER_WORDS.keys() | FUNCTIONS.keys()
    found = []
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder)
        if place.parts[0] in OF_BACKENDS or "template" in place.parts:  # an example of a backend
            continue
        known = torch_names & numpy_names if COMPUTES & {folder.name, place.parts[0]} else set()
        allowed = known | IN_FILES.get(place.as_posix(), set())
        found += [
            f"{place}:{line}: {name}"
            for line, name in find_names(ast.parse(path.read_text()))
            if name in names - allowed
        ]
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_of_the_core_and_its_features_names_an_operation_of_one_framework(package: str) -> None:
    assert find_operations(ROOT / package) == []


@pytest.mark.parametrize(
    "code",
    [
        'RULES = {"nll_loss2d_backward": 1}',
        'RULES = {"aten._native_batch_norm_legit.default": 1}',
        'MASKING = words("add index_put")',
        'is_sort = op.operation == "sort_dim"',
        "class Layer:\n    @overloaded.method\n    def max_pool2d_with_indices(self): ...",
    ],
)
def test_the_name_of_a_kernel_is_found_in_any_folder(tmp_path: Path, code: str) -> None:
    for folder in ("tensors", "hook"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").write_text(code)

    assert [line.partition(":")[0] for line in find_operations(tmp_path)] == ["hook/module.py", "tensors/module.py"]
