"""SplitNN: one model, split between two workers; only activations and their gradients are exchanged.

Alice has the data and the first part. Bob has the labels and the second part. Neither sees the data of the other, and
we, who coordinate the training, only see the loss.
"""

import torch
from torch import nn, optim

import syft_core as sy

hook = sy.TorchHook(torch)
alice = sy.VirtualWorker(hook, id="alice")
bob = sy.VirtualWorker(hook, id="bob")
torch.manual_seed(2)

data = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
target = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
first, second = nn.Sequential(nn.Linear(2, 8), nn.Tanh()), nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
whole = nn.Sequential(*first.copy(), *second.copy())

inputs, labels = data.send(alice), target.send(bob)
first.send(alice)
second.send(bob)
optimizers = [optim.SGD(part.parameters(), lr=1.0, momentum=0.9) for part in (first, second)]


def step_by_hand() -> float:
    """Do one training step; detach the activations, and send their gradient back explicitly."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    activations = first(inputs)
    received = activations.detach().move(bob).requires_grad_()
    loss = ((second(received) - labels) ** 2).mean()
    loss.backward()
    activations.backward(received.grad.copy().move(alice))
    for optimizer in optimizers:
        optimizer.step()
    return loss.get().item()


def step() -> float:
    """Do the same, but let `backward()` send the gradient back."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    received = first(inputs).move(bob, requires_grad=True)
    loss = ((second(received) - labels) ** 2).mean()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    return loss.get().item()


losses = []
for name, one_step, steps, reason in (
    ("By hand", step_by_hand, 20, "moved"),
    ("With `move(bob, requires_grad=True)`", step, 100, "its gradient went back"),
):
    print(f"{name}, three objects leave a worker in each step:")
    with sy.trace() as trace:
        losses.append(one_step())
    for event in trace.departures:
        source, destination = event.direction
        print(f"  {source} -> {destination}: {event.operation} {event.form}")
    assert [event.direction for event in trace.departures] == [
        ("alice", "bob"),  # the activations
        ("bob", "alice"),  # their gradient
        ("bob", "me"),  # the loss, which we fetch
    ]
    gradient, loss_line = list(bob.ledger)[-2:]
    assert (gradient.to, gradient.form, gradient.reason) == ("alice", "Tensor[4, 8]", reason)
    assert labels.id_at_location in gradient.sources  # the gradient was computed from the labels
    assert loss_line.to == "me"
    losses += [one_step() for _ in range(steps - 1)]
    print("  loss: " + " ".join(f"{loss:.4f}" for loss in losses[-steps :: steps // 5]))
assert losses[-1] < 0.01 < losses[0]

print("\nTraining the same model locally gives the same losses:")
optimizer = optim.SGD(whole.parameters(), lr=1.0, momentum=0.9)
for loss_of_split in losses:
    optimizer.zero_grad()
    loss = ((whole(data) - target) ** 2).mean()
    loss.backward()
    optimizer.step()
    assert abs(loss.item() - loss_of_split) < 1e-4
print(f"  last losses: {losses[-1]:.6f} and {loss.item():.6f}")

print("\nThe ledgers show what was exchanged, and that neither data nor labels were:")
raw = {inputs.id_at_location, labels.id_at_location}
for worker in (alice, bob):
    forms = sorted({f"{line.form} to {line.to}" for line in worker.ledger})
    print(f"  {worker.id}: {', '.join(forms)}")
    assert not raw & {line.id for line in worker.ledger}
assert len(alice.ledger) == len(losses)  # the activations of each step
assert sum(line.to == "alice" for line in bob.ledger) == len(losses)  # and their gradient
assert {line.to for line in alice.ledger} == {"bob"}
assert {line.to for line in bob.ledger} == {"alice", "me"}
