"""The rules of docs/architecture.md that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "syft_core"
FEATURES = [ROOT / name for name in ("syft_mpc", "syft_worker", "syft_ray")]
PACKAGES = [CORE, *FEATURES, ROOT / "syft_privacy", ROOT / "syft_sums", ROOT / "syft_torch", ROOT / "syft_numpy"]


def python(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def list_files(package: Path) -> list[Path]:
    """Return the files of a package, without the example that authors of backends start from."""
    template = CORE / "testing" / "template"
    return sorted(path for path in package.rglob("*.py") if template not in path.parents)


def find_modules_without_framework() -> list[Path]:
    """Return the modules of the core and of features, without those that are particular to a framework."""
    found = [path for package in (CORE, *FEATURES) for path in list_files(package)]
    return [path for path in found if path.parent.name not in ("torch", "numpy") and path.name != "__main__.py"]


def test_importing_the_core_and_all_features_loads_no_framework() -> None:
    paths = [path.relative_to(ROOT).with_suffix("") for path in find_modules_without_framework()]
    modules = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    assert len(modules) > 200
    loaded = python(f"import sys, importlib\nfor m in {modules!r}: importlib.import_module(m)\nprint(*sys.modules)")
    assert not {"torch", "numpy"} & set(loaded.split())
    of_backends = {module for module in loaded.split() if module.startswith(("syft_torch.", "syft_numpy."))}
    assert of_backends <= {"syft_torch.plugin", "syft_numpy.plugin"}


def test_only_what_needs_them_loads_the_libraries_of_the_network() -> None:
    program = "import sys, syft_core, syft_core.workers.party.virtual, syft_core.cli\nprint(*sys.modules)"
    loaded = {module.partition(".")[0] for module in python(program).split()}
    assert not {"cryptography", "websockets", "safetensors", "pyarrow"} & loaded
    assert "syft_core.network" not in python(
        "import sys, syft_core, syft_core.workers.party.virtual\nprint(*sys.modules)"
    )


def test_importing_a_plugin_does_not_import_its_framework() -> None:
    loaded = python("import sys, syft_torch.plugin, syft_numpy.plugin\nprint(*sys.modules)")
    assert not {"torch", "numpy"} & set(loaded.split())


def test_the_core_and_its_features_do_not_name_a_framework_in_their_code() -> None:
    words = re.compile(r"\b(torch|numpy|jax)\b")
    for path in find_modules_without_framework():
        tree = ast.parse(path.read_text())
        docstrings = {
            node.body[0].value
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        found = [
            ast.unparse(node)
            for node in ast.walk(tree)
            if (isinstance(node, ast.Name) and words.search(node.id))
            or (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and node not in docstrings
                and re.fullmatch(r"(torch|numpy|jax)[\w.]*", node.value)
            )
        ]
        assert found == [], path


def test_nothing_on_the_wire_side_evaluates_or_unpickles() -> None:
    # They check that a wrapper cannot be pickled.
    allowed = {CORE / "testing" / "section.py", *(ROOT / name / "testing.py" for name in ("syft_torch", "syft_numpy"))}
    for package in PACKAGES:
        for path in set(list_files(package)) - allowed:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    assert node.func.id not in {"eval", "exec", "compile", "__import__"}, path
                if path == ROOT / "syft_ray" / "buffers.py" and ast.unparse(node) == "from pickle import PickleBuffer":
                    continue  # It marks a buffer for Ray's object store, and can neither pickle nor unpickle.
                if isinstance(node, ast.Import | ast.ImportFrom):
                    names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                    assert not {"pickle", "marshal", "shelve", "dill", "cloudpickle"} & set(names), path


def test_asserts_are_no_control_flow() -> None:
    for package in PACKAGES:
        for path in list_files(package):
            if "testing" not in path.parts and path.name != "testing.py":
                asserts = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]
                assert asserts == [], path


def test_library_code_does_not_print() -> None:
    speakers = {CORE / "cli.py", CORE / "demo" / "screen.py", ROOT / "syft_worker" / "command.py"}
    for package in PACKAGES:
        for path in set(list_files(package)) - speakers:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    assert node.func.id != "print", path


def test_both_backends_have_the_same_files() -> None:
    wanted = {"plugin", "hook", "hook_args", "attributes", "wrapper", "native", "files", "serde", "py"}
    for backend in ("syft_torch", "syft_numpy"):
        assert wanted <= {path.stem for path in (ROOT / backend).iterdir()}


def test_every_plugin_hook_has_documentation_and_a_test() -> None:
    pytest.importorskip("pluggy")
    from syft_core.plugins import hookspecs  # noqa: PLC0415  # after the skip

    documentation = (ROOT / "docs" / "architecture.md").read_text()
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "core").rglob("*.py"))
    specs = [name for name, value in vars(hookspecs).items() if hasattr(value, "syft_core_spec")]
    assert specs
    for name in specs:
        assert getattr(hookspecs, name).__doc__
        assert f"`{name}`" in documentation
        assert f"def {name}(" in tests


def test_every_public_name_of_the_seeds_exists_at_its_place() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("numpy")
    from importlib import import_module  # noqa: PLC0415  # after the skip

    places = {
        "syft_torch.hook": "TorchHook",
        "syft_torch.attributes": "TorchAttributes",
        "syft_core.hook.overload": "Module Overloaded overloaded",
        "syft_core.tensors.logging": "LoggingTensor",
        "syft_core.tensors.plus_is_minus": "PlusIsMinusTensor",
        "syft_core.tensors.polynomial": "PolynomialTensor",
        "syft_core.tensors.abstract": "AbstractTensor",
        "syft_torch.native": "TorchTensor",
        "syft_mpc.spdz": "spdz_mul",
        "syft_mpc.securenn": """decompose flip select_share private_compare msb share_convert relu_deriv relu
            division maxpool maxpool_deriv maxpool2d""",
        "syft_torch.hook_args": """build_rule build_args_hook build_get_tensor_type build_hook_args_function
            build_hook_response_function build_response_hook build_register_response_function build_register_response
            register_response register_tensor hook_method_args hook_function_args hook_response one zero_fold one_fold
            two_fold three_fold four_fold five_fold six_fold seven_fold eight_fold many_fold one_layer two_layers
            three_layers four_layers typed_identity""",
        "syft_core.hook.hook_args": """hook_method_args_functions hook_method_response_functions
            get_tensor_type_functions register_response_functions base_types one get_child type_rule forward_func
            backward_func ambiguous_methods ambiguous_functions register_type_rule register_forward_func
            register_backward_func register_ambiguous_method register_ambiguous_function default_backward_func
            default_register_tensor unwrap_args_from_method unwrap_args_from_function build_unwrap_args_from_function
            build_unwrap_args_with_rules hook_response build_wrap_reponse_from_function build_wrap_response_with_rules
            build_rule build_get_tensor_type one_layer two_layers three_layers four_layers get_element_at zero_fold
            one_fold two_fold three_fold four_fold five_fold six_fold seven_fold eight_fold many_fold typed_identity
            register_response build_register_response_function register_tensor build_register_response""",
    }
    for module, names in places.items():
        for name in names.split():
            assert hasattr(import_module(module), name), f"{module}.{name}"


def test_any_is_rare_and_never_the_type_of_a_party() -> None:
    sources = [path.read_text() for package in PACKAGES for path in list_files(package)]

    assert sum(len(re.findall(r"\bAny\b", source)) for source in sources) <= 930
    assert not [found for source in sources for found in re.findall(r"\w*(?:worker|sender|location): Any\b", source)]


MIRRORED = {"Array", "Wrapper"}
"""Names that mean the same thing in each backend."""


def test_a_type_name_is_taken_once() -> None:
    found: dict[str, list[str]] = {}
    for path in [path for package in PACKAGES for path in list_files(package)]:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
            elif isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation):
                found.setdefault(ast.unparse(node.target), []).append(str(path.relative_to(ROOT)))

    repeated = {name: paths for name, paths in found.items() if len(paths) > 1 and len(name) > 1}
    assert not {name: paths for name, paths in repeated.items() if name not in MIRRORED}


def test_a_docstring_can_be_read_alone() -> None:
    begins = re.compile(r'"""(The same|Do what)\b')

    assert not [path.name for package in PACKAGES for path in list_files(package) if begins.search(path.read_text())]
