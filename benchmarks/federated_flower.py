"""Flower's simulation on Ray in a process of its own, for ``federated.py``: a round for each line that it reads.

CPU seconds are those of all of its processes. With the argument ``sums``, updates are summed by SecAgg+.
"""

import json
import logging
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"

import torch
from flwr.client import ClientApp, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.common import Context, ndarrays_to_parameters
from flwr.server import LegacyContext, ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.simulation import run_simulation
from processes import count_cpu, count_memory

SAMPLES, SIZE, CLASSES, BATCH, LR = 600, 784, 10, 32, 0.1
ANSWERS, sys.stdout = sys.stdout, sys.stderr


def make_model():
    return torch.nn.Sequential(torch.nn.Linear(SIZE, 128), torch.nn.ReLU(), torch.nn.Linear(128, CLASSES))


class Client(NumPyClient):
    """Trains on data that it makes again each time, which is not measured as ours is: it takes 3 ms."""

    def __init__(self, number):
        generator = torch.Generator().manual_seed(number)
        self.x = torch.randn(SAMPLES, SIZE, generator=generator)
        self.y = torch.randint(0, CLASSES, (SAMPLES,), generator=generator)

    def fit(self, parameters, config):
        torch.set_num_threads(1)
        model = make_model()
        with torch.no_grad():
            for tensor, array in zip(model.parameters(), parameters, strict=True):
                tensor.copy_(torch.from_numpy(array))
        optimizer = torch.optim.SGD(model.parameters(), lr=LR)
        for rows in torch.randperm(SAMPLES).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(self.x[rows]), self.y[rows]).backward()
            optimizer.step()
        return [tensor.detach().numpy() for tensor in model.parameters()], SAMPLES, {}


class Turns(FedAvg):
    """Reads a line before each round, and reports its time."""

    def configure_fit(self, server_round, parameters, client_manager):
        if server_round == 1:
            print(json.dumps({"engine": "flower"}), file=ANSWERS, flush=True)
        if not sys.stdin.readline():
            os._exit(0)
        self.before = count_cpu(), time.perf_counter()
        return super().configure_fit(server_round, parameters, client_manager)

    def aggregate_fit(self, server_round, results, failures):
        found = super().aggregate_fit(server_round, results, failures)
        cpu, wall = count_cpu() - self.before[0], time.perf_counter() - self.before[1]
        print(json.dumps({"cpu": cpu, "wall": wall, "memory": count_memory()}), file=ANSWERS, flush=True)
        return found


def main():
    logging.disable(logging.WARNING)
    clients = int(sys.argv[1])

    sums = "sums" in sys.argv[2:]

    def make_strategy():
        start = ndarrays_to_parameters([tensor.detach().numpy() for tensor in make_model().parameters()])
        return Turns(
            fraction_fit=1.0, fraction_evaluate=0.0, min_fit_clients=clients, min_available_clients=clients,
            initial_parameters=start,
        )  # fmt: skip

    def make_server(context: Context):
        return ServerAppComponents(strategy=make_strategy(), config=ServerConfig(num_rounds=10**6))

    def make_client(context: Context):
        return Client(int(context.node_config["partition-id"])).to_client()

    server = ServerApp() if sums else ServerApp(server_fn=make_server)
    if sums:

        @server.main()
        def sum_updates(grid, context):
            legacy = LegacyContext(context, ServerConfig(num_rounds=10**6), make_strategy())
            # As many shares and as large a quorum as ours, with one colluding client.
            fit = SecAggPlusWorkflow(clients, (clients + 1) // 2 + 1, max_weight=SAMPLES)
            DefaultWorkflow(fit_workflow=fit)(grid, legacy)

    run_simulation(
        server_app=server,
        client_app=ClientApp(client_fn=make_client, mods=[secaggplus_mod] if sums else None),
        num_supernodes=clients,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )


if __name__ == "__main__":
    main()
