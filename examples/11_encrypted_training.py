"""Encrypted training: a model learns from data that nobody sees, and nobody sees the model."""

import time

import torch
from torch import nn, optim
from torch.nn.functional import one_hot

import syft_core as sy

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("this example needs scikit-learn, which has its data: pip install scikit-learn") from None

hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")
carol = sy.VirtualWorker(hook, id="carol")


def train(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, lr: float, batches: list[slice]) -> None:
    """Train with torch's own autograd and optimizer; the code is the same for plain and for shared numbers."""
    optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for rows in batches:
        optimizer.zero_grad()
        loss = ((model(inputs[rows]) - targets[rows]) ** 2).sum() / (rows.stop - rows.start)
        loss.backward()
        optimizer.step()


print("A small start: four samples, whose label is the first number.")
data = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
target = data[:, :1]
print("  steps of     error of the trained model")
errors = {}
for digits in (4, 8, 12, 16):
    torch.manual_seed(0)
    precision = {"base": 2, "precision_fractional": digits}
    model = nn.Linear(2, 1).fix_precision(**precision).share(bob, alice, crypto_provider=carol)
    x = data.fix_precision(**precision).share(bob, alice, crypto_provider=carol)
    y = target.fix_precision(**precision).share(bob, alice, crypto_provider=carol)
    train(model, x, y, 0.1, [slice(0, 4)] * 60)
    model.get().float_precision()
    errors[digits] = ((model(data) - target) ** 2).mean().item()
    print(f"  1/{2**digits:<9} {errors[digits]:.5f}")
assert errors[16] < 0.01
print("Results are rounded up or down at random: small gradients are not lost, but coarse steps make them noisy.")

print("\nHandwritten digits: 1,400 images to learn from, 397 to test; a network with 32 hidden units.")
digits = load_digits()
images, labels = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
batches = [slice(start, start + 100) for start in range(0, 1400, 100)] * 3
precision = {"base": 2, "precision_fractional": 16}


def make_model() -> nn.Module:
    """Return the same model each time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def compute_accuracy(model: nn.Module) -> float:
    """Return which part of the test images is right."""
    return (model(images[1400:]).argmax(1) == labels[1400:]).float().mean().item()


plain = make_model()
train(plain, images, one_hot(labels, 10).float(), 0.1, batches)
print(f"  trained in plain sight:  {compute_accuracy(plain):.1%} right")

model = make_model().fix_precision(**precision).share(bob, alice, crypto_provider=carol)
inputs = images[:1400].fix_precision(**precision).share(bob, alice, crypto_provider=carol)
targets = one_hot(labels[:1400], 10).float().fix_precision(**precision).share(bob, alice, crypto_provider=carol)
started = time.perf_counter()
with sy.crypto.count() as counted:
    train(model, inputs, targets, 0.1, batches)
seconds = time.perf_counter() - started
steps = len(batches)
each = f"{counted.rounds // steps} rounds and {counted.bytes / steps / 1e6:.1f} MB for each"
print(f"  {steps} encrypted steps in {seconds:.1f} s, {each}")
model.get().float_precision()
accuracy = compute_accuracy(model)
print(f"  trained on shares:       {accuracy:.1%} right")
assert accuracy > compute_accuracy(plain) - 0.02
pairs = list(zip(model.parameters(), plain.parameters(), strict=True))
difference = torch.cat([(a - b).abs().flatten() for a, b in pairs]).mean().item()
print(f"  the weights differ by {difference:.5f} on average")
assert difference < 0.01

print("\nNothing left bob and alice but the shares of the trained models:")
print(bob.ledger.summary())
assert len(bob.ledger) == len(alice.ledger) == 4 * 2 + 4
