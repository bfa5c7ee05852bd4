"""A hospital: load its own data, serve it to a user with a token, and decide what may leave."""

import hmac
import os
import sys
import threading

import torch

import syft_core as sy
from syft_core.network.credentials import Credentials
from syft_core.network.identity import Identity
from syft_worker.page import Page

name, seed = sys.argv[1], int(sys.argv[2])
tokens = {os.environ["USER_TOKEN"]: Identity("dana"), os.environ["OWNER_TOKEN"]: Identity("owner", True)}


def authenticate(credentials: Credentials) -> Identity | None:
    """Return who has a token."""
    given = (credentials.token or "").encode()
    return next((who for token, who in tokens.items() if hmac.compare_digest(token.encode(), given)), None)


# The data is here before any client exists, and nobody may fetch it.
hook = sy.TorchHook(torch)
torch.manual_seed(seed)
patients = torch.randn(300, 4) + 0.5 * seed
ill = (patients @ torch.tensor([[2.0], [-1.0], [0.5], [1.5]]) + torch.randn(300, 1) > 0).float()
data = [patients.private_tensor([]).tag("#study", "#patients"), ill.private_tensor([]).tag("#study", "#ill")]
worker = sy.WebsocketServerWorker(hook, id=name, data=data, authenticate=authenticate)
worker.start(block=False)
page = Page(worker.server)
page.start()
print(worker.port, page.url, flush=True)

# The owner decides: here by a rule, which cannot know what eight numbers mean, otherwise by a look at `request.values`.
# The page calls `approve` and `deny`, too.
closing = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), closing.set()), daemon=True).start()
while not closing.wait(0.05):
    for request in worker.requests:
        if request.state != "open":
            continue
        if sum(value.numel() for value in request.values) <= 8 and request.forms.startswith("Parameter"):
            worker.approve(request, by=f"Dr. Noor of {name}")
        else:
            worker.deny(request, "patients do not leave", by=f"Dr. Noor of {name}")

page.stop()
worker.stop()
print(f"what left {name}:\n{worker.ledger.summary()}")
print(f"what was asked of {name}:\n{worker.requests}")
