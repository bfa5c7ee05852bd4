"""Part 12, federated training: a convolutional network on digits that stay with four owners.

First by hand, batch by batch; then with a trainer, which is shorter, faster, and does not need the owners' help in each
step.
"""

import sys

import torch
from torch import nn, optim

import syft_core as sy
from syft_torch import federated as fl

try:
    from sklearn.datasets import load_digits
except ImportError:
    sys.exit("this example needs scikit-learn: pip install scikit-learn")

hook = sy.TorchHook(torch)
torch.set_num_threads(1)  # The network is small: further threads would only wait for each other.
torch.manual_seed(0)
owners = [sy.VirtualWorker(hook, id=name) for name in ("north", "east", "south", "west")]

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
train = fl.BaseDataset(images[:1500], labels[:1500]).federate(owners)
test = fl.BaseDataset(images[1500:], labels[1500:])
print("The images are spread over four owners:")
print(train)


def make_model() -> nn.Module:
    """Return a small convolutional network."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 10))


def find_accuracy(model: nn.Module) -> float:
    """Return the accuracy on images that nobody trained on."""
    with torch.no_grad():
        return fl.accuracy(model(test.data), test.targets).item()


print("By hand: the model travels to each batch, and back.")
model = make_model()
optimizer = optim.SGD(model.parameters(), lr=0.2)
loader = fl.FederatedDataLoader(train, batch_size=64, shuffle=True)
for _ in range(2):
    for data, target in loader:
        model.send(data.location)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        model.get()
by_hand = find_accuracy(model)
print(f"  {len(loader)} batches in each epoch; accuracy {by_hand:.3f}\n")
assert by_hand > 0.7

print("With a trainer: each owner trains on all of its data, and the model is averaged after each round.")
trainer = fl.FederatedTrainer(
    make_model(), nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=0.2), train, epochs=3, batch_size=32
)
history = trainer.fit(rounds=4)
print(history)
accuracy = find_accuracy(trainer.model)
print(f"  accuracy {accuracy:.3f}\n")
assert accuracy > 0.8

print("The owners measure the model on their data; only sums leave them:")
evaluation = trainer.evaluate()
print(evaluation)
assert evaluation["accuracy"] > 0.85

print("\nWhat has left an owner: the change of the weights and a loss in each round, and the sums of an evaluation.")
print(owners[0].ledger.summary())

print("\nOther strategies need one word. Here one owner is broken, and the median ignores it:")
broken = train["west"].targets
broken.copy_(broken * 0 + 7)  # All of its labels are wrong.
robust = fl.FederatedTrainer(
    make_model(), nn.functional.cross_entropy, lambda p: optim.SGD(p, lr=0.2), train, fl.Median(), epochs=3
)
robust.fit(rounds=2)
print(f"  accuracy {find_accuracy(robust.model):.3f}")
assert find_accuracy(robust.model) > 0.7
