"""Encrypted classification: a model that its author keeps secret reads digits that their owner keeps secret."""

import time

import torch
from torch import nn

import syft_core as sy

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("this example needs scikit-learn, which has its data: pip install scikit-learn") from None

hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")
carol = sy.VirtualWorker(hook, id="carol")
precision = {"base": 2, "precision_fractional": 16}
torch.manual_seed(1)

digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(digits.target)
train, test = slice(0, 1500), slice(1500, 1564)

print("The author trains a convolutional network, as usual:")
model = nn.Sequential(
    *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Flatten(), nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10)),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(8):
    for rows in torch.arange(1500).split(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[train][rows]), labels[train][rows]).backward()
        optimizer.step()
with torch.no_grad():
    scores = model(images[test])
accuracy = (scores.argmax(1) == labels[test]).float().mean().item()
print(f"  {accuracy:.1%} of {len(scores)} new digits are right")

print("\nShe shares the model among bob and alice, and the owner of the images shares those. Nobody sees either:")
model.fix_precision(**precision).share(bob, alice, crypto_provider=carol)
shared = images[test].fix_precision(**precision).share(bob, alice, crypto_provider=carol)
at_bob = shared.child.child.child["bob"].id_at_location
print(f"  a row of pixels at bob: {bob.get_obj(at_bob)[0, 0, 0, :3].tolist()} ...")

print("\nBob and alice compute the scores, and the position of the largest one:")
started = time.perf_counter()
with torch.no_grad(), sy.crypto.count() as counted:
    encrypted = model(shared)
    answers = encrypted.argmax(dim=1)
seconds = time.perf_counter() - started
print(f"  {len(scores)} images in {seconds:.1f} s, {counted.rounds} rounds, {counted.bytes / 1e6:.1f} MB")

print("\nOnly the answers are opened, not the scores:")
found = answers.get(reason="classification").float_precision().long()
print(f"  found  {found[:16].tolist()}")
print(f"  truth  {labels[test][:16].tolist()}")
same = (found == scores.argmax(1)).float().mean().item()
right = (found == labels[test]).float().mean().item()
print(f"  {right:.1%} right; {same:.1%} are the answers of the plain model")
assert same > 0.98
assert right > 0.85

print("\nThe scores differ from the plain ones in the last digits only:")
difference = (encrypted.decrypt() - scores).abs().max().item()
print(f"  largest difference {difference:.4f}")
assert difference < 0.01

print("\nThe random numbers do not depend on the images, so they can be dealt before the images come:")
with torch.no_grad():
    sy.crypto.prepare(lambda: model(shared[:1]), times=1)
    with sy.crypto.count() as counted:
        model(shared[:1])
print(f"  one more image: {counted.rounds} rounds, {counted.dealt} bytes from carol")
assert counted.dealt == 0
