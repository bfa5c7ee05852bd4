"""Part 15, tables of hospitals: agree on columns, scale, split, train, and measure, without seeing a row.

Each hospital has a CSV file, and says in its configuration what the columns are. A consortium does this first.
"""

import csv
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn, optim

import syft_core as sy
from syft_torch import federated as fl
from syft_worker.data import DataSource, load

try:
    from sklearn.datasets import load_breast_cancer
except ImportError:
    sys.exit("this example needs scikit-learn: pip install scikit-learn")

hook = sy.TorchHook(torch)
torch.manual_seed(0)
folder = tempfile.TemporaryDirectory()
cells = load_breast_cancer()
names = [name.replace(" ", "_") for name in cells.feature_names]

print("Each hospital has a table, and declares its columns, as in the file of `syft-core worker`:")


def load_hospital(name: str, rows: slice, unit: str = "mm") -> sy.VirtualWorker:
    """Write a table, and start the worker of a hospital with it."""
    path = Path(folder.name, f"{name}.csv")
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*names, "outcome"])
        for place, (row, ill) in enumerate(zip(cells.data[rows], cells.target[rows], strict=True)):
            gaps = {0} if place % 20 == 0 else set()  # Some values are missing.
            table.writerow(["" if n in gaps else value for n, value in enumerate(row)] + [cells.target_names[ill]])
    hospital = sy.VirtualWorker(hook, id=name)
    source = {
        "file": str(path),
        "tags": ["#patients"],
        "mock": "draw",
        "schema": {
            names[0]: {"unit": unit, "range": [0, 50], "missing": "keep"},
            "outcome": {"categories": ["malignant", "benign"]},
        },
    }
    hospital.load_data(load([DataSource.from_table(source)], hook))
    return hospital


hospitals = [load_hospital(name, slice(place, 569, 3)) for place, name in enumerate(("north", "east", "south"))]
(patients,) = hospitals[0].search("#patients")
print(patients.schema.choose(["mean_radius", "outcome"]))

print("\nA program is developed on mocks, which nobody's data is in:")
print(patients.mock[["mean_radius", "outcome"]].get()[:2])

print("\nAll tables must have the same columns, types, units and categories:")
inches = load_hospital("west", slice(0, 30), unit="inch")
try:
    fl.find("#patients", label="outcome", workers=[*hospitals, inches])
except fl.FederatedError as error:
    print(f"  {error}")

print("\nFind, split, scale with the mean and the deviation of all hospitals, train:")
data = fl.find("#patients", label="outcome", missing="mean", workers=hospitals)
train, test = fl.train_test_split(data, test_size=0.25, seed=1)
scaling = fl.Scaling.fit(train)
train, test = scaling.apply(train), scaling.apply(test)
print(f"  {len(train)} patients for training, {len(test)} for testing")
trainer = fl.FederatedTrainer(
    nn.Linear(len(names), 2), nn.functional.cross_entropy, lambda p: optim.Adam(p, lr=0.05), train, epochs=2
)
trainer.fit(rounds=6)

print("\nMeasure on patients that the model has not seen; only counts leave a hospital:")
found = trainer.evaluate(test, {"auc": fl.AUC(), "confusion": fl.ConfusionMatrix()})
print(found)
assert found["auc"] > 0.95
assert int(found["confusion"].sum()) == len(test)
folder.cleanup()
