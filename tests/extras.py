"""Use the feature of one extra in an environment that has nothing else: ``tox run -e extra-numpy``.

It runs outside of the clone, so what it imports is the installed wheel.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path


def use_nothing() -> None:
    """List the plugins, and make one; no framework is installed."""
    assert find_spec("torch") is None
    assert find_spec("numpy") is None
    run("plugins")
    with tempfile.TemporaryDirectory() as folder:
        run("new-plugin", "mine", "--folder", folder)
        assert Path(folder, "syft-mine", ".github", "workflows", "ci.yml").exists()


def use_torch() -> None:
    """Compute on a worker, train with a trainer, and add shares."""
    import torch

    import syft_core as sy
    from syft_torch import federated as fl

    with sy.TorchHook(torch) as hook:
        bob, alice, carol = (sy.VirtualWorker(hook, id=name) for name in ("bob", "alice", "carol"))
        assert (torch.tensor([1.0, 2.0]).send(bob) * 2).get().tolist() == [2.0, 4.0]
        shared = torch.tensor([1.5]).fix_prec().share(bob, alice, crypto_provider=carol)
        assert (shared + shared).get().float_prec().tolist() == [3.0]
        data = fl.BaseDataset(torch.ones(4, 1), torch.ones(4, 1)).federate((bob, alice))
        trainer = fl.FederatedTrainer(torch.nn.Linear(1, 1), torch.nn.functional.mse_loss, make_optimizer, data)
        assert len(trainer.fit(rounds=1)) == 1


def make_optimizer(parameters: object) -> object:
    """Return the optimizer of a client."""
    import torch

    return torch.optim.SGD(parameters, lr=0.1)


def use_numpy() -> None:
    """Compute on a worker; torch is not installed."""
    import numpy as np

    import syft_core as sy

    assert find_spec("torch") is None
    with sy.NumpyHook(np) as hook:
        bob = sy.VirtualWorker(hook, id="bob")
        assert (hook.attributes.wrapper(np.array([1.0, 2.0])).send(bob) * 2).get().tolist() == [2.0, 4.0]


def use_ray() -> None:
    """Compute on a worker in an actor of Ray."""
    import numpy as np

    import syft_core as sy

    with sy.NumpyHook(np) as hook, sy.RayWorkers(hook, count=2, actors=1) as workers:
        assert len(workers) == 2


def use_lz4() -> None:
    """Compress a part of a message."""
    from syft_core.serde.compression import choose, compress

    method = choose("auto")
    assert method is not None
    assert method.name == "lz4"
    assert len(compress(b"a" * 100_000, method, sample=True)[1]) < 5_000


def use_safetensors() -> None:
    """Read arrays that safetensors wrote."""
    import numpy as np
    from safetensors.numpy import save_file

    from syft_numpy.files import read_safetensors

    with tempfile.TemporaryDirectory() as folder:
        save_file({"x": np.ones(3)}, str(Path(folder, "x.safetensors")))
        assert read_safetensors(Path(folder, "x.safetensors"))["x"].tolist() == [1.0, 1.0, 1.0]


def use_parquet() -> None:
    """Read a table that pyarrow wrote."""
    import pyarrow as pa
    from pyarrow import parquet

    from syft_worker.tables import TableRules, read_parquet

    with tempfile.TemporaryDirectory() as folder:
        parquet.write_table(pa.table({"age": [30, 40]}), Path(folder, "x.parquet"))
        read_parquet(Path(folder, "x.parquet"), TableRules())


def use_dp() -> None:
    """Compare the ε of Gaussian noise with that of dp-accounting."""
    import numpy as np
    from dp_accounting import GaussianDpEvent, rdp

    from syft_privacy.epsilon import convert

    grid = np.arange(1.1, 100.0, 0.1)
    theirs = rdp.RdpAccountant(grid.tolist()).compose(GaussianDpEvent(4.0)).get_epsilon(1e-5)
    ours = convert(grid / (2 * 4.0**2), grid, 1e-5, "improved").min()
    assert abs(ours / theirs - 1) < 1e-6


def use_demo() -> None:
    """Run the demo on both frameworks."""
    run("demo", "torch", "--fast")
    run("demo", "numpy", "--fast")


def run(*arguments: str) -> None:
    """Run the command of the installed package."""
    command = [str(Path(sys.executable).parent / "syft-core"), *arguments]
    subprocess.run(command, check=True, timeout=300)


USES: dict[str, Callable[[], None]] = {
    "none": use_nothing,
    "torch": use_torch,
    "numpy": use_numpy,
    "ray": use_ray,
    "lz4": use_lz4,
    "safetensors": use_safetensors,
    "parquet": use_parquet,
    "dp": use_dp,
    "demo": use_demo,
}


if __name__ == "__main__":
    USES[sys.argv[1].removeprefix("extra-")]()
