"""Part 2, federated learning by hand: send the model to the data, which stays with its owners."""

import torch
from torch import nn, optim

import syft_core as sy

hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")
torch.manual_seed(7)

print("Bob and Alice have loaded two samples each; the label is the first input. We find the data by its tags.")
data = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
target = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
for worker, rows in ((bob, [0, 2]), (alice, [1, 3])):
    worker.load_data([data[rows].tag("#inputs"), target[rows].tag("#labels")])
datasets = [(worker.search("#inputs")[0], worker.search("#labels")[0]) for worker in (bob, alice)]
for inputs, _ in datasets:
    print(f"  {inputs.child}, {tuple(inputs.shape)}")


def train(model: nn.Module, optimizers: dict[str, optim.Optimizer], epochs: int) -> list[float]:
    """Train with every owner in each epoch; return the losses."""
    losses = []
    for _ in range(epochs):
        for inputs, labels in datasets:
            model.send(inputs.location)
            optimizer = optimizers[inputs.location.id]
            optimizer.zero_grad()
            loss = ((model(inputs) - labels) ** 2).sum()
            loss.backward()
            optimizer.step()
            model.get()
            losses.append(loss.get().item())
    return losses


print("\nTrain a linear model with both owners in turn, with plain SGD:")
linear = nn.Linear(2, 1)
weight = linear.weight
sgd = optim.SGD(linear.parameters(), lr=0.1)
losses = train(linear, {"bob": sgd, "alice": sgd}, epochs=20)
print("  loss: " + " ".join(f"{loss:.3f}" for loss in losses[::4]))
assert losses[-1] < 0.1 < losses[0]
assert linear.weight is weight, "a model that is sent keeps its Parameter objects"
assert linear.location is None

print("\nLocal training gives the same weights, bit for bit:")
torch.manual_seed(7)
local = nn.Linear(2, 1)
sgd = optim.SGD(local.parameters(), lr=0.1)
for _ in range(20):
    for rows in ([0, 2], [1, 3]):
        sgd.zero_grad()
        ((local(data[rows]) - target[rows]) ** 2).sum().backward()
        sgd.step()
print(f"  {linear.weight.data} and {local.weight.data}")
assert torch.equal(linear.weight, local.weight)
assert torch.equal(linear.bias, local.bias)

print("\nOptimizers with state, such as Adam: create one per owner; its state stays with the data.")
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
adams = {name: optim.Adam(model.parameters(), lr=0.02) for name in ("bob", "alice")}
losses = train(model, adams, epochs=60)
print("  loss: " + " ".join(f"{loss:.3f}" for loss in losses[::12]))
assert losses[-1] < 0.05 < losses[0]

print("\nThe model is local again and can be used as usual:")
predictions = model(data).detach()
print(f"  {predictions.flatten()}")
assert torch.equal(predictions.round(), target)

print("\nThe data never left; the model and the losses did, and the ledgers show what they were computed from:")
for worker, (inputs, labels) in zip((bob, alice), datasets, strict=True):
    released = {line.id for line in worker.ledger}
    assert released
    assert not {inputs.id_at_location, labels.id_at_location} & released
print(bob.ledger.summary())
