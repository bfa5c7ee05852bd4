"""Apple's pfl in a process of its own, for ``federated.py``: a round for each line that it reads."""

import json
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Weighted
from pfl.model.pytorch import PyTorchModel

SAMPLES, SIZE, CLASSES, BATCH, LR = 600, 784, 10, 32, 0.1
ANSWERS, sys.stdout = sys.stdout, sys.stderr


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(SIZE, 128), torch.nn.ReLU(), torch.nn.Linear(128, CLASSES))

    def forward(self, x):
        return self.layers(x)

    def loss(self, x, y, is_eval=False):
        return torch.nn.functional.cross_entropy(self(x), y)

    def metrics(self, x, y):
        return {"loss": Weighted(self.loss(x, y).item() * len(y), len(y))}


class Turns(TrainingProcessCallback):
    """Reads a line before each round, and reports its time."""

    def __init__(self):
        super().__init__()
        self.before = None

    def _wait(self):
        if not sys.stdin.readline():
            os._exit(0)
        self.before = time.process_time(), time.perf_counter()

    def on_train_begin(self, *, model):
        print(json.dumps({"engine": "pfl"}), file=ANSWERS, flush=True)
        self._wait()
        return super().on_train_begin(model=model)

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        cpu, wall = time.process_time() - self.before[0], time.perf_counter() - self.before[1]
        print(json.dumps({"cpu": cpu, "wall": wall}), file=ANSWERS, flush=True)
        self._wait()
        return super().after_central_iteration(aggregate_metrics, model, central_iteration=central_iteration)


def main():
    clients = int(sys.argv[1])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    data = {
        str(number): (
            torch.randn(SAMPLES, SIZE, generator=generator),
            torch.randint(0, CLASSES, (SAMPLES,), generator=generator),
        )
        for number in range(clients)
    }
    sampler = get_user_sampler("minimize_reuse", list(data))
    dataset = FederatedDataset(lambda user: Dataset(raw_data=data[user]), sampler)
    net = Net()
    model = PyTorchModel(
        net,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(net.parameters(), lr=1.0),
    )
    backend = SimulatedBackend(training_data=dataset, val_data=dataset, postprocessors=[])
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=10**6,
            evaluation_frequency=10**6,
            train_cohort_size=clients,
            val_cohort_size=0,
        ),
        backend=backend,
        model=model,
        model_train_params=NNTrainHyperParams(local_batch_size=BATCH, local_num_epochs=1, local_learning_rate=LR),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[Turns()],
    )


if __name__ == "__main__":
    main()
