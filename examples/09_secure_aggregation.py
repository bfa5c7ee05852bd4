"""Secure aggregation: owners train separately, and everybody gets the average model, but nobody another owner's."""

import torch
from torch import nn, optim

import syft_core as sy

hook = sy.TorchHook(torch)
owners = [sy.VirtualWorker(hook, id=name) for name in ("bob", "alice", "dave")]
carol = sy.VirtualWorker(hook, id="carol")
precision = {"base": 2, "precision_fractional": 16}
torch.manual_seed(3)

print("Three owners have data of their own. It is private: nobody may fetch it, or anything computed from it.")
true = torch.tensor([[2.0], [-1.0]])
data = [torch.randn(40, 2) + shift for shift in (-1.0, 0.0, 1.0)]
target = [part @ true + 0.3 + 0.1 * torch.randn(40, 1) for part in data]
for worker, inputs, labels in zip(owners, data, target, strict=True):
    worker.load_data([inputs.private_tensor([]).tag("#inputs"), labels.private_tensor([]).tag("#labels")])
    worker.trust(carol, *(other for other in owners if other is not worker))


def train(model: nn.Module, worker: sy.VirtualWorker) -> None:
    """Train at one owner."""
    inputs, labels = worker.search("#inputs")[0], worker.search("#labels")[0]
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        ((model(inputs) - labels) ** 2).mean().backward()
        optimizer.step()


def open_sum(shared: torch.Tensor, reason: str) -> torch.Tensor:
    """Ask all owners for the sum of the models; they approve, because it is a sum."""
    for worker in owners:
        number = shared.child.child.child[worker.id].request(reason)
        worker.approve(number, by=f"the owner of {worker.id}")
    return shared.get(reason=reason).float_precision()


print("\nIn each round, every owner trains a copy. The copies are added as shares, and only the sum is opened:")
model = nn.Linear(2, 1)
for number in range(1, 5):
    copies = [model.copy().send(worker) for worker in owners]
    for copy, worker in zip(copies, owners, strict=True):
        train(copy, worker)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Each owner encodes its weights, and adds them to its share of zeros: they do not leave it.
            weights = [copy.get_parameter(name).fix_precision(**precision) for copy in copies]
            parts = [weight.share(*owners, crypto_provider=carol) for weight in weights]
            total = parts[0] + parts[1] + parts[2]
            parameter.copy_(open_sum(total, f"round {number}") / len(owners))
    error = sum(((model(x) - y) ** 2).mean().item() for x, y in zip(data, target, strict=True)) / 3
    print(f"  round {number}: weights {[round(w, 3) for w in model.weight.flatten().tolist()]}, error {error:.4f}")
assert error < 0.05
assert torch.allclose(model.weight.flatten(), true.flatten(), atol=0.1)

print("\nThe average is that of the owners' models, up to the precision. Only this program can look at them all:")
plain = [bob.get_obj(copy.weight.id_at_location) for bob, copy in zip(owners, copies, strict=True)]
plain = [getattr(weight, "child", weight).data for weight in plain]
difference = (sum(plain) / 3 - model.weight.data).abs().max().item()
print(f"  largest difference: {difference:.1e}")
assert difference < 1e-4

print("\nOne model alone does not leave:")
try:
    copies[0].get()
except sy.exceptions.GetNotPermittedError as error:
    print(f"  refused: {str(error).partition(': ')[2].partition(';')[0]}")
else:
    raise AssertionError("a model left its owner")

print("\nWhat left bob: his shares of sums, which are random numbers without those of the others.")
print(owners[0].ledger.summary())
assert len(owners[0].ledger) == 8
