"""Release a model: train on private data, ask for the model, let the owner look at it, and take it home."""

import torch

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError

hook = sy.TorchHook(torch)
hospital = sy.VirtualWorker(hook, id="hospital")

# The owner offers data that nobody may fetch, and everything computed from it is as private.
torch.manual_seed(0)
ages = torch.rand(200, 1) * 60 + 20
dose = 0.3 * ages + 2 + torch.randn(200, 1)
hospital.load_data([ages.private_tensor([]).tag("#ages"), dose.private_tensor([]).tag("#dose")])

# A data scientist trains on it without seeing it.
hook.local_worker.user = "dana"
x, y = hospital.search("#ages")[0], hospital.search("#dose")[0]
x = (x - x.mean()) / x.std()
model = torch.nn.Linear(1, 1).send(hospital)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

try:
    model.get()
except GetNotPermittedError as error:
    print("refused:", error)
else:
    raise AssertionError("the model left without a release")

# She asks for it and says why. The owner sees a table, looks at the copies that would leave, and approves.
number = model.request("dosage model for the paper")
print(hospital.requests)
weight, bias = hospital.requests[0].values
assert weight.shape == (1, 1)
assert bias.shape == (1,)
hospital.approve(number, by="Dr. Noor")

model = model.get(reason="paper")
assert abs(model.bias.item() - dose.mean().item()) < 0.5
print(hospital.ledger.summary())
assert all(line.reason == f"paper, request {number}, approved by Dr. Noor" for line in hospital.ledger)

# An approval is good for one departure.
assert hospital.requests[0].state == "released"
hook.unhook()
