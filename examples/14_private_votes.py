"""PATE: teachers at three hospitals label public images by votes that nobody sees, and a student learns from them."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

import syft_core as sy
from syft_torch import federated as fl
from syft_torch.differential_privacy import pate
from syft_torch.differential_privacy.votes import REFUSED, GNMax

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("this example needs scikit-learn, which has its data: pip install scikit-learn") from None

hook = sy.TorchHook(torch)
hospitals = [sy.VirtualWorker(hook, id=name) for name in ("st-mary", "st-john", "st-luke")]
provider = sy.VirtualWorker(hook, id="provider")
TEACHERS, RECORDS, QUERIES, DELTA = 25, 16, 200, 1e-4
torch.manual_seed(0)

digits = load_digits()
order = torch.randperm(len(digits.images))
images = torch.tensor(digits.data / 16, dtype=torch.float32)[order]
labels = torch.tensor(digits.target)[order]
private, public = images[: 3 * TEACHERS * RECORDS], images[3 * TEACHERS * RECORDS :]
queries, test, truth = public[:QUERIES], public[QUERIES:], labels[3 * TEACHERS * RECORDS + QUERIES :]

print(f"Three hospitals have {TEACHERS * RECORDS} private images each, and split them among {TEACHERS} teachers:")
for place, hospital in enumerate(hospitals):
    rows = slice(place * TEACHERS * RECORDS, (place + 1) * TEACHERS * RECORDS)
    own = private[rows].reshape(RECORDS, TEACHERS, 64), labels[rows].reshape(RECORDS, TEACHERS)
    hospital.load_data(
        [part.private_tensor([]).tag(tag) for part, tag in zip(own, ("#images", "#labels"), strict=True)]
    )
    hospital.trust(provider, *(other for other in hospitals if other is not hospital))


class Teachers(nn.Module):
    """One linear model for each teacher, each with weights of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(TEACHERS, 64, 10))
        self.bias = nn.Parameter(torch.zeros(TEACHERS, 1, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of each image for its teacher; an image without one gets those of all teachers."""
        return (x.transpose(0, 1) @ self.weight + self.bias).transpose(0, 1)


def loss(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean of the losses of all teachers; each depends on the weights of one teacher."""
    return nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


# The workers train: each its own teachers, on its own images, which the models do not leave.
data = fl.find("#images", "#labels", workers=hospitals)
trainer = fl.FederatedTrainer(
    Teachers(), loss, lambda p: torch.optim.SGD(p, lr=0.5 * TEACHERS, momentum=0.9), data, epochs=25, batch_size=None
)
teachers = list(trainer.train_apart().values())
with torch.no_grad():
    shown = queries.unsqueeze(1)
    predictions = [model(shown.send(hospital)).argmax(2).T for model, hospital in zip(teachers, hospitals, strict=True)]
print(f"  {3 * TEACHERS} teachers predict a label for each of {QUERIES} public images; nobody may fetch these labels")
try:
    predictions[0].get()
except sy.exceptions.GetNotPermittedError as error:
    print(f"  refused: {str(error).partition(':')[2].strip().partition(',')[0]}")


def decide(hospital: sy.VirtualWorker, method: GNMax) -> None:
    """Approve, as the owner of a hospital, answers with the noise that was agreed on, and nothing else."""
    for request in [request for request in hospital.requests if request.state == "open"]:
        if method.covers(request, workers=len(hospitals)):
            hospital.approve(request, by=f"the board of {hospital.id}")
        else:
            hospital.deny(request, "only answers with noise leave")


def ask(method: GNMax, reason: str) -> torch.Tensor:
    """Let the hospitals vote, and fetch the answers if all owners approve."""
    answers = method.vote(predictions, provider)
    answers.request(reason)
    for hospital in hospitals:
        decide(hospital, method)
    return answers.get(reason=reason)


def train_student(answers: torch.Tensor) -> float:
    """Train on the public images that have an answer; return the accuracy on new images."""
    known = answers != REFUSED
    student = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(student.parameters(), lr=0.05, weight_decay=1e-3)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(student(queries[known]), answers[known]).backward()
        optimizer.step()
    return (student(test).argmax(1) == truth).float().mean().item()


print("\nThe hospitals vote on shares. Each adds noise of its own, and only the answers are opened:")
plain = GNMax(classes=10, sigma=8)
confident = GNMax(classes=10, sigma=8, threshold=45, threshold_sigma=12)
found = {}
for name, method in (("GNMax", plain), ("Confident-GNMax", confident)):
    answers = found[name] = ask(method, name)
    answered = answers != REFUSED
    right = (answers == labels[3 * TEACHERS * RECORDS :][:QUERIES])[answered].float().mean().item()
    accuracy = train_student(answers)
    print(f"  {name}: {int(answered.sum())} of {QUERIES} queries answered, {right:.1%} right; student {accuracy:.1%}")
    print(f"    for all votes: {method.guarantee(answers, DELTA)}")
    assert accuracy > 0.8
print("  (both are asked to compare them; together they cost more than each of them)")

print("\nA client that asks for something else is denied:")
raw = predictions[0].sum(0)
raw.request("just a sum")
decide(hospitals[0], plain)
print(f"  {hospitals[0].requests[-1].state}: {hospitals[0].requests[-1].answer}")
assert hospitals[0].requests[-1].state == "denied"

print("\nAn auditor, whom all hospitals trust, may see the votes. What they cost is itself private:")
table = np.concatenate(  # Only because this program owns the hospitals.
    [hospital.get_obj(pointer.id_at_location) for hospital, pointer in zip(hospitals, predictions, strict=True)]
)
votes = np.stack([(table == label).sum(0) for label in range(10)], axis=1)
for name, method in (("GNMax", plain), ("Confident-GNMax", confident)):
    loss = method.analyse(votes, found[name], DELTA, workers=3)
    released = loss.release(order=6, noise=8)
    print(f"  {name}: {loss}; for these votes ε = {float(loss):.2f}, for all votes {loss.independent.epsilon:.2f}")
    print(f"    released with noise: {released}; with more teachers it would be less")
    assert loss < loss.independent.epsilon
# Laplace noise with a standard deviation of 8 · √(3/2) votes, that of the noise of all three hospitals.
laplace, for_all = pate.perform_analysis(table, None, noise_eps=2 / (8 * 3**0.5), delta=DELTA, num_classes=10)
print(f"  LNMax, the method of 2017, with as much Laplace noise: for these votes ε = {float(laplace):.2f}, ", end="")
print(f"for all votes {for_all:.2f}")

print("\nWhat left each hospital:")
for hospital in hospitals:
    print(f"  {hospital.id}:")
    print("    " + str(hospital.ledger.summary()).replace("\n", "\n    "))
    assert len([entry for entry in hospital.ledger if entry.event == "released"]) == 2


def draw(curves: dict[str, list[float]]) -> str:
    """Draw ε against the number of queries, as SVG."""
    highest = max(max(values) for values in curves.values())
    parts = [f'<text x="60" y="20">ε at δ = {DELTA:g}, up to {highest:.1f}; queries, up to {QUERIES}</text>']
    for place, (name, values) in enumerate(curves.items()):
        color = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")[place]
        points = " ".join(
            f"{60 + 500 * n / len(values):.0f},{320 - 270 * value / highest:.0f}" for n, value in enumerate(values, 1)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="340" y="{250 + 16 * place}" fill="{color}">{name}</text>')
    axes = '<path d="M60 40V320H570" fill="none" stroke="black"/>'
    start = '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="340" font-family="sans-serif" font-size="13">'
    return f"{start}{axes}{''.join(parts)}</svg>"


steps = range(10, QUERIES + 1, 10)
curves = {
    "GNMax, for all votes": [plain.guarantee(found["GNMax"][:n], DELTA).epsilon for n in steps],
    "Confident, for all votes": [confident.guarantee(found["Confident-GNMax"][:n], DELTA).epsilon for n in steps],
    "GNMax, these votes (auditor)": [
        float(plain.analyse(votes[:n], found["GNMax"][:n], DELTA, workers=3)) for n in steps
    ],
    "Confident, these votes (auditor)": [
        float(confident.analyse(votes[:n], found["Confident-GNMax"][:n], DELTA, workers=3)) for n in steps
    ],
}
picture = Path(tempfile.mkdtemp()) / "epsilon.svg"
picture.write_text(draw(curves), encoding="utf-8")
print(f"\nε against the number of queries: {picture}")
assert all(values == sorted(values) for values in curves.values())
