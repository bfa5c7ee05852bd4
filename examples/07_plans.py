"""Plans: record a function or a training step once, and run it on workers with one message per call."""

from __future__ import annotations

import copy

import torch

import syft_core as sy
from syft_core.plans.errors import PlanError

hook = sy.TorchHook(torch)
hook.attributes.warm_up()
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")

# --- a function


@sy.func2plan(args_shape=[(-1, 1)])
def double_abs(x):
    return (x + x).abs()


print(double_abs.code)
there = double_abs.send(bob, alice)
for worker in (bob, alice):
    x = torch.tensor([[-1.0], [2.0], [3.0]]).send(worker)
    result = there(x)
    print(f"{worker.id} answers", result.get().flatten().tolist())

# --- a model


class Net(sy.Plan):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, 3)
        self.second = torch.nn.Linear(3, 2)

    def forward(self, x):
        return torch.log_softmax(self.second(torch.relu(self.first(x))), dim=1)


net = Net().build(torch.zeros(1, 2))
scores = net.send(bob)(torch.tensor([[1.0, 2.0]]).send(bob)).get()
assert torch.equal(scores, net(torch.tensor([[1.0, 2.0]])).detach())
print("the same model here and on bob:", scores.shape)

# --- a training step, with the state of its optimizer

torch.manual_seed(0)
data = [(torch.rand(8, 2), torch.rand(8, 1)) for _ in range(20)]
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
at_home = copy.deepcopy(model)


@sy.func2plan()
def step(x, y):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss


training = step.build(*data[0]).send(bob)
batches = [(x.send(bob), y.send(bob)) for x, y in data]
with sy.trace() as trace:
    for x, y in batches:
        loss = training(x, y)
print(f"{len(step.actions)} operations per step, {len(trace)} messages for {len(batches)} steps")
training.get()  # The trained weights are in `model` now.
print("the last loss:", round(loss.get().item(), 4))

adam = torch.optim.Adam(at_home.parameters(), lr=0.1)
for x, y in data:
    adam.zero_grad()
    ((at_home(x) - y) ** 2).mean().backward()
    adam.step()
assert torch.equal(model.weight, at_home.weight)
print("bit for bit the weights of local training")

# --- what cannot be recorded is refused, with its line

try:
    sy.Plan("stop early", lambda x: x if x.sum() > 1 else x * 2).build(torch.ones(2))
except PlanError as error:
    print("refused:", str(error).partition("; ")[0].rpartition("/")[2])
