"""Part 2, federated learning by hand: the model travels to the data, which stays where it is."""

import torch
from torch import nn, optim

import syft_core as sy

hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")
torch.manual_seed(7)

print("Bob and Alice have loaded two samples each; the answer is the first input. We find them by their tags.")
data = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
target = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
for worker, rows in ((bob, [0, 2]), (alice, [1, 3])):
    worker.load_data([data[rows].tag("#inputs"), target[rows].tag("#answers")])
datasets = [(worker.search("#inputs")[0], worker.search("#answers")[0]) for worker in (bob, alice)]
for inputs, _ in datasets:
    print(f"  {inputs.child}, {tuple(inputs.shape)}")


def train(model: nn.Module, optimizers: dict[str, optim.Optimizer], epochs: int) -> list[float]:
    """Let the model visit every owner of data in each epoch; return the losses."""
    losses = []
    for _ in range(epochs):
        for inputs, answers in datasets:
            model.send(inputs.location)
            optimizer = optimizers[inputs.location.id]
            optimizer.zero_grad()
            loss = ((model(inputs) - answers) ** 2).sum()
            loss.backward()
            optimizer.step()
            model.get()
            losses.append(loss.get().item())
    return losses


print("\nA linear model visits them in turns, with plain SGD:")
linear = nn.Linear(2, 1)
weight = linear.weight
sgd = optim.SGD(linear.parameters(), lr=0.1)
losses = train(linear, {"bob": sgd, "alice": sgd}, epochs=20)
print("  loss: " + " ".join(f"{loss:.3f}" for loss in losses[::4]))
assert losses[-1] < 0.1 < losses[0]
assert linear.weight is weight, "a model that travels keeps its Parameter objects"
assert linear.location is None

print("\nThe same training at home gives the same weights, bit for bit:")
torch.manual_seed(7)
at_home = nn.Linear(2, 1)
sgd = optim.SGD(at_home.parameters(), lr=0.1)
for _ in range(20):
    for rows in ([0, 2], [1, 3]):
        sgd.zero_grad()
        ((at_home(data[rows]) - target[rows]) ** 2).sum().backward()
        sgd.step()
print(f"  {linear.weight.data} and {at_home.weight.data}")
assert torch.equal(linear.weight, at_home.weight)
assert torch.equal(linear.bias, at_home.bias)

print("\nOptimizers with a memory, such as Adam: one for each owner, whose state stays with the data.")
model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
adams = {name: optim.Adam(model.parameters(), lr=0.02) for name in ("bob", "alice")}
losses = train(model, adams, epochs=60)
print("  loss: " + " ".join(f"{loss:.3f}" for loss in losses[::12]))
assert losses[-1] < 0.05 < losses[0]

print("\nThe model is home again and answers questions of its own:")
answers = model(data).detach()
print(f"  {answers.flatten()}")
assert torch.equal(answers.round(), target)

print("\nThe data never left; the model and its losses did, and the ledgers say what they were computed from:")
for worker, (inputs, answers) in zip((bob, alice), datasets, strict=True):
    taken = {line.id for line in worker.ledger}
    assert taken
    assert not {inputs.id_at_location, answers.id_at_location} & taken
print(bob.ledger.summary())
