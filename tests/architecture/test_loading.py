"""Nobody who does not use a feature loads it, and whoever uses it in any way gets it, in whatever order."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from syft_core.features import FEATURES
from syft_core.messages import HANDLERS
from syft_core.plugins.manager import plugin_manager
from syft_core.serde import codecs
from syft_core.serde.failures import failures

ROOT = Path(__file__).parents[2]
MAX_MODULES, MAX_LINES = 154, 24_000

BEGIN = """
import json, sys, warnings
warnings.simplefilter("ignore")
import {framework}
import syft_core as sy
from syft_core.features import FEATURES

def report(**more):
    modules = {{name: m.__file__ for name, m in sys.modules.items() if name.startswith("syft_") and m.__file__}}
    loaded = [feature.name for feature in FEATURES if FEATURES.is_loaded(feature.name)]
    print(json.dumps({{"modules": modules, "loaded": loaded, "other": "torch" in sys.modules, **more}}))
"""
TORCH = """
hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
x = torch.ones(3)
"""
NUMPY = """
hook = sy.NumpyHook(numpy)
bob = sy.VirtualWorker(hook, id="bob")
x = hook.ones(3)
"""
HOOKED = {"torch": TORCH, "numpy": NUMPY}


def run(framework: str, program: str, *arguments: str) -> dict[str, Any]:
    """Run a program in a new process, and return what it reports."""
    pytest.importorskip(framework)
    done = subprocess.run(
        [sys.executable, "-c", BEGIN.format(framework=framework) + program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "SYFT_SERIALIZE": "0"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- what is not used


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_a_program_without_features_loads_none_and_little_else(framework: str) -> None:
    found = run(framework, HOOKED[framework] + "y = x.send(bob) + 1\nreport(result=y.get().tolist())")

    lines = sum(len(Path(file).read_text().splitlines()) for file in found["modules"].values())
    assert found["result"] == [2.0, 2.0, 2.0]
    assert found["loaded"] == []
    assert len(found["modules"]) <= MAX_MODULES
    assert lines <= MAX_LINES


def test_the_module_of_a_plugin_imports_only_what_describes_it() -> None:
    allowed = {"__future__", "syft_core.features", "syft_core.plugins.backend", "syft_core.plugins.hookspecs"}
    for path in [*ROOT.glob("syft_*/plugin.py")]:
        imported = {node.module for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)}
        assert imported <= {*allowed, "syft_core.registry"}, path


# --- what is used

USES = {
    "a name: plans": ("torch", "sy.Plan", "plans"),
    "a name: the network": ("torch", "sy.connect", "network"),
    "a name: encrypted computation": ("numpy", "sy.FixedPrecisionTensor", "mpc"),
    "a name: Ray": ("torch", "sy.ray", "ray"),
    "a name: the desk": ("torch", "sy.desk", "worker"),
    "a method of tensors": ("torch", "x.fix_precision()", "mpc"),
    "a method of arrays": ("numpy", "x.fix_precision()", "mpc"),
    "a method of modules": ("torch", "torch.nn.Linear(2, 2).fix_precision()", "mpc"),
    "a method of pointers": ("torch", "x.send(bob).child.request('why')", "worker"),
    "a method of wrappers": ("torch", "x.send(bob).request('why')", "worker"),
    "a method of remote modules": ("torch", "torch.nn.Linear(2, 2).send(bob).request('why')", "worker"),
    "a method of locations": ("torch", "hook.local_worker.location_of(bob).requests()", "worker"),
    "the desk of a worker": ("torch", "bob.desk", "worker"),
    "a short form of the desk": ("torch", "bob.requests", "worker"),
    "a class that was imported directly": (
        "torch",
        "from syft_mpc.fixed_precision import FixedPrecisionTensor as F\n"
        "layer = F(); layer.dtype = torch.float32\n"
        "layer.on(torch.tensor([1500, 2500]))",
        "mpc",
    ),
    "a message that was imported directly": (
        "torch",
        "from syft_worker.desk.messages import FollowRequests as F\nhook.local_worker.location_of(bob).ask(F())",
        "worker",
    ),
    "a rule, when the policy keeps an object": (
        "torch",
        "strict = sy.VirtualWorker(hook, id='strict', policy='nothing')\n"
        "try: x.send(strict).get()\nexcept sy.exceptions.GetNotPermittedError: pass",
        "worker",
    ),
}


@pytest.mark.parametrize("use", USES)
def test_a_feature_is_loaded_when_something_of_it_is_used(use: str) -> None:
    framework, program, feature = USES[use]

    found = run(framework, HOOKED[framework] + "before = sys.modules.copy()\n" + program + "\nreport()")

    assert feature in found["loaded"]


def test_what_a_backend_adds_to_a_feature_is_there_whichever_comes_first() -> None:
    compute = "x = torch.tensor([-1.5, 2.0]).fix_precision()\nreport(result=torch.relu(x).float_prec().tolist())"

    before = run("torch", "sy.FixedPrecisionTensor\nhook = sy.TorchHook(torch)\n" + compute)
    after = run("torch", "hook = sy.TorchHook(torch)\nsy.FixedPrecisionTensor\n" + compute)
    neither = run("torch", "import syft_mpc.additive_shared\nhook = sy.TorchHook(torch)\n" + compute)

    assert before["result"] == after["result"] == neither["result"] == [0.0, 2.0]


MADE = """
from syft_core.serde import serialize
from syft_core.messages import Batch
alice = sy.VirtualWorker(hook, id="alice")

@sy.func2plan(args_shape=[(3,)])
def double(v):
    return v * 2

from syft_torch.federated.training import Evaluate
from syft_torch.federated.errors import FederatedError
from syft_worker.desk.errors import ReleaseError
from syft_worker.desk.messages import FollowRequests
from syft_mpc.messages import OpenChannel
import dataclasses
fields = {f.name: {"int": 1, "str": "", "bool": False}.get(str(f.type)) for f in dataclasses.fields(OpenChannel)}
made = {
    "an encoded tensor": x.fix_precision(),
    "a plan": double,
    "a message of the desk": Batch(1, (FollowRequests(),)),
    "an error of the desk": ReleaseError("cannot ask: because; do"),
    "an error of training": FederatedError("cannot train: because; do"),
    "a module": torch.nn.Linear(2, 2),
}
report(made={name: serialize(thing).hex() for name, thing in made.items()})
"""
READ = {
    "an encoded tensor": "mpc",
    "a plan": "plans",
    "a message of the desk": "worker",
    "an error of the desk": "worker",
    "an error of training": "federated training",
    "a module": "torch's codecs",
}


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    found: dict[str, str] = run("torch", TORCH + MADE)["made"]
    return found


@pytest.mark.parametrize("thing", READ)
def test_a_feature_is_loaded_when_something_of_it_is_received(made: dict[str, str], thing: str) -> None:
    read = TORCH + "from syft_core.serde import deserialize\nread = deserialize(bytes.fromhex(sys.argv[1]))\n"

    found = run("torch", read + "report(kind=type(read).__name__)", made[thing])

    assert READ[thing] in found["loaded"]
    assert found["kind"] in {"NumericWrapper", "Plan", "Batch", "ReleaseError", "FederatedError", "Linear"}


def test_threads_that_need_a_feature_at_the_same_time_all_get_it(made: dict[str, str]) -> None:
    read = """
from concurrent.futures import ThreadPoolExecutor
from syft_core.serde import deserialize
sys.setswitchinterval(1e-5)
data = bytes.fromhex(sys.argv[1])
with ThreadPoolExecutor(8) as threads:
    kinds = {type(read).__name__ for read in threads.map(deserialize, [data] * 32)}
report(kinds=sorted(kinds))
"""

    assert run("torch", TORCH + read, made["an encoded tensor"])["kinds"] == ["NumericWrapper"]


UNKNOWN = """
from syft_core.serde import deserialize, serialize
from syft_core.exceptions import SerdeError
import msgpack
whole = serialize(ValueError("abc"))
before = set(sys.modules)
refused = []
def attempt(data):
    try:
        deserialize(data)
    except SerdeError as error:
        refused.append(str(error)[:70])
for code in (150, 161, 380, 399, 999, 5000):
    good = serialize((ValueError("abc"),))
    attempt(good.replace(b"\\x10", bytes([0xcd, code >> 8, code & 255]), 1))
attempt(whole.replace(b"ValueError", b"os.systemX", 1))
report(refused=refused, news=sorted(n for n in set(sys.modules) - before if n.startswith(("torch", "syft_torch"))))
"""


def test_a_peer_cannot_make_a_worker_load_a_framework_or_what_no_plugin_offers() -> None:
    found = run("numpy", NUMPY + UNKNOWN)

    assert found["news"] == []
    assert not found["other"]
    assert len(found["refused"]) == 7


def test_a_ledger_with_requests_loads_the_desk_and_one_without_does_not(tmp_path: Path) -> None:
    write = """
from pathlib import Path
from syft_core.workers.seeing.ledger import Ledger
bob = sy.VirtualWorker(hook, id="bo", ledger=Ledger("bo", Path(sys.argv[1]) / "asked"))
pointer = torch.ones(3).send(bob)
pointer.request("for the test")
other = sy.VirtualWorker(hook, id="carol", ledger=Ledger("carol", Path(sys.argv[1]) / "quiet"))
torch.ones(3).send(other).get()
report()
"""
    read = """
from pathlib import Path
from syft_core.workers.seeing.ledger import Ledger
quiet = Ledger("carol", Path(sys.argv[1]) / "quiet")
before = [feature.name for feature in FEATURES if FEATURES.is_loaded(feature.name)]
asked = sy.VirtualWorker(hook, id="bo", ledger=Ledger("bo", Path(sys.argv[1]) / "asked"))
report(before=before, requests=[request.reason for request in asked.requests])
"""
    run("torch", TORCH + write, str(tmp_path))
    found = run("torch", TORCH + read, str(tmp_path))

    assert found["before"] == []
    assert "worker" in found["loaded"]
    assert found["requests"] == ["for the test"]


def test_a_stored_object_loads_its_feature_when_the_worker_starts_again(tmp_path: Path) -> None:
    start = """
from pathlib import Path
from syft_worker.storage import Storage
bob = sy.VirtualWorker(hook, id="keeper")
storage = Storage(Path(sys.argv[1]) / "store", bob)
"""
    write = """
encoded = torch.tensor([1.5, 2.5]).fix_precision().tag("#encoded").send(bob)
encoded.publish()
storage.close()
report()
"""
    read = """
before = [feature.name for feature in FEATURES if FEATURES.is_loaded(feature.name)]
(found,) = bob.search("#encoded")
report(before=before, numbers=found.get().float_prec().tolist())
"""
    run("torch", TORCH + start + write, str(tmp_path))
    found = run("torch", TORCH + start + read, str(tmp_path))

    assert "mpc" in found["before"]
    assert found["numbers"] == [1.5, 2.5]


# --- the tables


def test_features_offer_exactly_what_they_register() -> None:
    pytest.importorskip("torch")
    import syft_torch.hook  # noqa: F401, PLC0415  # after the skip

    plugin_manager().load_all()
    offered: dict[str, set[Any]] = {"code": set(), "error": set()}
    for feature in FEATURES:
        for table, key in feature.list_keys():
            offered.setdefault(table, set()).add(key)
    modules = {
        code: codec.detail.__module__ if codec.type.__module__.startswith("torch") else codec.type.__module__
        for code, codec in codecs.by_code.items()
    }
    kernel = ("builtins", "syft_core.", "syft_numpy.", "numpy", "collections", "types", "datetime")
    ours = {code for code, module in modules.items() if module.startswith("syft_") and code < 1000}
    of_features = {code for code in ours if not modules[code].startswith(kernel) or ".plans." in modules[code]}
    errors = {
        name for name in failures if name.startswith(("syft_mpc", "syft_sums", "syft_worker", "syft_torch", "syft_ray"))
    }

    assert {code for code in of_features if not 150 <= code < 170} == offered["code"] - set(range(150, 170))
    assert errors | {"syft_core.plans.errors.PlanError", "syft_core.network.errors.AddressError"} == offered["error"]
    assert {kind.code for kind in HANDLERS if not kind.__module__.startswith("syft_core.messages")} & ours <= offered[
        "code"
    ]


def test_whatever_is_sent_first_the_feature_that_can_send_it_is_loaded() -> None:
    """A message or another object of a feature has a codec, also if nothing else of the feature was used before."""
    found = run(
        "torch",
        """
from syft_core.messages import HANDLERS
from syft_core.serde import codecs
hook = sy.TorchHook(torch)
FEATURES.load_all()
kernel = ("syft_core.", "syft_torch.wrapper", "syft_torch.numeric")

def is_declared(module):
    parts = module.split(".")
    return any(("package", ".".join(parts[:n])) in FEATURES for n in range(1, len(parts) + 1))

def is_of_feature(module):
    is_kernel = module.startswith(kernel) and not module.startswith(("syft_core.plans", "syft_core.network"))
    return module.startswith("syft_") and not is_kernel

kinds = [kind for kind in [*HANDLERS, *codecs.by_type] if is_of_feature(kind.__module__)]
report(kinds=len(kinds), missing=[kind.__qualname__ for kind in kinds if not is_declared(kind.__module__)])
""",
    )

    assert found["kinds"] > 20
    assert found["missing"] == []


def test_a_served_worker_that_imports_everything_loads_no_other_framework_and_no_optional_package() -> None:
    found = run(
        "numpy",
        """
from syft_core.features import import_everything
hook = sy.NumpyHook(numpy)
import_everything()
report(heavy=[name for name in ("torch", "matplotlib", "IPython", "ray") if name in sys.modules])
""",
    )

    assert found["heavy"] == []
