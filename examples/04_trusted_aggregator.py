"""Part 4, a trusted aggregator: owners train separately, and we only receive the average of their models."""

import torch
from torch import nn, optim

import syft_core as sy

hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")
secure_worker = sy.VirtualWorker(hook, id="secure_worker")
torch.manual_seed(3)

data = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
target = torch.tensor([[0.0], [0.0], [1.0], [1.0]])
owners = {
    bob: (data[[0, 3]].send(bob), target[[0, 3]].send(bob)),
    alice: (data[[1, 2]].send(alice), target[[1, 2]].send(alice)),
}

model = nn.Linear(2, 1)
start = ((model(data) - target) ** 2).sum().item()

print("In each round every owner trains a copy; a worker that both trust averages the copies.")
for number in range(6):
    copies = {worker: model.copy().send(worker) for worker in owners}
    for worker, (inputs, labels) in owners.items():
        optimizer = optim.SGD(copies[worker].parameters(), lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            loss = ((copies[worker](inputs) - labels) ** 2).sum()
            loss.backward()
            optimizer.step()
    for worker, trained in copies.items():
        trained.move(secure_worker)
        for part in trained.parameters():
            part.tag(f"#{worker.id}")
    first, second = copies[bob], copies[alice]
    with torch.no_grad():
        model.weight.set_(((first.weight.data + second.weight.data) / 2).get())
        model.bias.set_(((first.bias.data + second.bias.data) / 2).get())
    print(f"  round {number + 1}: loss {((model(data) - target) ** 2).sum().item():.4f}")

end = ((model(data) - target) ** 2).sum().item()
assert end < 0.05 < start

print("\nThe ledger of the secure worker shows that everything we received was computed from both models:")
print(secure_worker.ledger.summary())
departures = [line for line in secure_worker.ledger if line.to == "me"]
assert len(departures) == 12
assert all(len(line.sources) >= 2 for line in departures)

print("\nBob and Alice sent their models to nobody else:")
for worker in owners:
    print(f"  {worker.id} -> {sorted({line.to for line in worker.ledger})}")
    assert {line.to for line in worker.ledger} == {"secure_worker"}
