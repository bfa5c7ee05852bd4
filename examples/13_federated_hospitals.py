"""Part 13, federated hospitals: find data by tags, train on it, and let a trusted worker average.

The data of each hospital was there before any client existed. The last part is about private data, whose updates leave
a hospital only after its owner has agreed.
"""

import sys
import threading

import torch
from torch import nn, optim

import syft_core as sy
from syft_torch import federated as fl

try:
    from sklearn.datasets import load_breast_cancer
except ImportError:
    sys.exit("this example needs scikit-learn: pip install scikit-learn")

hook = sy.TorchHook(torch)
torch.manual_seed(0)
hospitals = [sy.VirtualWorker(hook, id=name) for name in ("north", "east", "south")]
cells = load_breast_cancer()
scans = torch.tensor(cells.data, dtype=torch.float32)
scans = (scans - scans.mean(0)) / scans.std(0)
labels = torch.tensor(cells.target, dtype=torch.float32).unsqueeze(1)
for place, hospital in enumerate(hospitals):
    rows = slice(place, 450, 3)
    hospital.load_data([scans[rows].tag("#scans"), labels[rows].tag("#labels")])

print("A scientist finds the data of all hospitals:")
data = fl.find("#scans", "#labels", workers=hospitals)
print(data)


def find_accuracy(model: nn.Module) -> float:
    """Return the accuracy on patients of no hospital."""
    with torch.no_grad():
        return ((model(scans[450:]) > 0) == (labels[450:] > 0.5)).float().mean().item()


print("One model for each hospital, one Adam for each, and a trusted worker that averages them after each epoch:")
secure = sy.VirtualWorker(hook, id="secure")
model = nn.Linear(30, 1)
batches = fl.extract_batches_per_worker(fl.FederatedDataLoader(data, batch_size=50))
for _ in range(4):
    models = {}
    for name, found in batches.items():
        local = model.copy().send(name)
        optimizer = optim.Adam(local.parameters(), lr=0.05)
        for inputs, targets in found:
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(local(inputs), targets).backward()
            optimizer.step()
        models[name] = local.move(secure)
    samples = {name: data.count(name) for name in models}
    # The models are on the trusted worker; only their mean leaves it.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parts = [models[key].get_parameter(name).data * (samples[key] / len(data)) for key in models]
            parameter.copy_(sum(parts[1:], parts[0]).get())
print(f"  accuracy {find_accuracy(model):.3f}")
assert find_accuracy(model) > 0.9

print("\nThe trainer does all of it, and the loop runs at the hospitals:")
trainer = fl.FederatedTrainer(
    nn.Linear(30, 1), nn.functional.binary_cross_entropy_with_logits, lambda p: optim.Adam(p, lr=0.05), data, epochs=2
)
print(trainer.fit(rounds=4))
print(f"  accuracy {find_accuracy(trainer.model):.3f}")
assert find_accuracy(trainer.model) > 0.9

print("\nA fourth hospital has private data. Its updates do not leave by themselves:")
clinic = sy.VirtualWorker(hook, id="clinic")
clinic.load_data([
    scans[:100].private_tensor(["dr-noor"]).tag("#scans"), labels[:100].private_tensor(["dr-noor"]).tag("#labels"),
])  # fmt: skip
private = fl.find("#scans", "#labels", workers=[clinic])
passes = {"epochs": 2, "batch_size": 25}
loss = nn.functional.binary_cross_entropy_with_logits
refused = fl.FederatedTrainer(nn.Linear(30, 1), loss, lambda p: optim.Adam(p, lr=0.05), private, **passes)
try:
    refused.fit(rounds=1)
except fl.FederatedError as error:
    print(f"  {str(error)[:120]}…")

print("\nWith a reason, the owner is asked in each round, and decides:")
asking = fl.FederatedTrainer(
    nn.Linear(30, 1), loss, lambda p: optim.Adam(p, lr=0.05), private, options=fl.Options(reason="a study"), **passes
)
done = threading.Event()


def approve() -> None:
    """Look at requests, as the owner would on the page of the worker."""
    while not done.wait(0.02):
        for request in [request for request in clinic.requests if request.state == "open"]:
            print(f"  owner: {request.forms} for {request.reason!r}, computed from {request.sources}: approved")
            clinic.approve(request)


owner = threading.Thread(target=approve)
owner.start()
try:
    asking.fit(rounds=2)
finally:
    done.set()
    owner.join()
assert len(asking.history) == 2
assert [request.state for request in clinic.requests] == ["released", "released"]
