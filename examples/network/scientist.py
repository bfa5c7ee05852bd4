"""A data scientist: find data at two hospitals, train one model over both, and ask for it."""

import os
import sys
import time

import torch

import syft_core as sy
from syft_core.exceptions import GetNotPermittedError

hook = sy.TorchHook(torch)
token = os.environ["USER_TOKEN"]
hospitals = [sy.WebsocketClientWorker(hook, "127.0.0.1", int(port), token=token) for port in sys.argv[1:]]


def wait_for(pointer, seconds=60):
    """Return what an owner has approved; raise if the owner has denied it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return pointer.get(reason="study")
        except GetNotPermittedError as error:  # noqa: PERF203  # it waits anyway
            if "waiting for its owner" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


# Every hospital trains a copy of the same model on its patients; neither waits for the other.
torch.manual_seed(0)
start = torch.nn.Linear(4, 1)
models = []
for hospital in hospitals:
    x, y = (hospital.search(["#study", tag])[0] for tag in ("#patients", "#ill"))
    model = torch.nn.Linear(4, 1)
    model.load_state_dict(start.state_dict())
    model.send(hospital)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
    models.append(model)

# One patient may not leave, a model may.
patient = x[0]
patient.request("to see whether it works")
try:
    wait_for(patient)
except GetNotPermittedError as error:
    print("refused:", error)
else:
    raise AssertionError("a patient left the hospital")
for model in models:
    model.request("the model of our study")
trained = [wait_for(model) for model in models]

# The average of both models, on patients of neither hospital.
with torch.no_grad():
    for parameters in zip(start.parameters(), *(model.parameters() for model in trained), strict=True):
        parameters[0].copy_(torch.stack(parameters[1:]).mean(0))
    patients = torch.randn(1000, 4) + 0.75
    ill = patients @ torch.tensor([[2.0], [-1.0], [0.5], [1.5]]) > 0
    accuracy = ((start(patients) > 0) == ill).float().mean().item()
print(f"accuracy on new patients: {accuracy:.2f}")
assert accuracy > 0.9
for hospital in hospitals:
    hospital.close()
hook.unhook()
