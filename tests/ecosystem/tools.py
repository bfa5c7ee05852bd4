"""Third-party trainers, adapters, generation and metrics, locally and on a worker."""

from __future__ import annotations

import copy
import logging
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

import syft_core as sy

from .compare import Outcome, judge
from .programs import digits, mlp, small_bert, small_gpt, text


def train_with_lightning(bob: Any) -> Outcome:
    """Train a model for two epochs with Lightning's Trainer."""
    import lightning  # noqa: PLC0415

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Classifier(lightning.LightningModule):  # type: ignore[misc]  # what it inherits is Any
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp()

        def training_step(self, batch: Any, _number: int) -> Any:
            x, y = batch
            return torch.nn.functional.cross_entropy(self.net(x), y)

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    def fit(model: Any, batches: Any) -> float:
        torch.manual_seed(1)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = lightning.Trainer(accelerator="cpu", max_epochs=2, enable_model_summary=False, **quiet)
        started = time.perf_counter()
        trainer.fit(model, DataLoader(batches, batch_size=None))
        return time.perf_counter() - started

    torch.manual_seed(0)
    model, data = Classifier(), digits()
    remote = copy.deepcopy(model).send(bob)
    batches = [(data["x"][start : start + 16], data["y"][start : start + 16]) for start in range(0, 64, 16)]
    at_home = fit(model, batches)
    elsewhere = fit(remote, [(x.send(bob), y.send(bob)) for x, y in batches])
    return Outcome(judge(model.state_dict().values(), remote.get().state_dict().values()), elsewhere / at_home)


def measure_with_torchmetrics(bob: Any) -> Outcome:
    """Compute an accuracy over two batches; ``with bob:`` creates the state of the metric on the worker."""
    from torchmetrics.classification import MulticlassAccuracy  # noqa: PLC0415

    torch.manual_seed(0)
    scores, labels = torch.randn(64, 10), digits()["y"]
    metric = MulticlassAccuracy(10, average="micro", validate_args=False)
    with bob:
        remote = MulticlassAccuracy(10, average="micro", validate_args=False)
    times = []
    for one, send in ((metric, lambda tensor: tensor), (remote, lambda tensor: tensor.send(bob))):
        started = time.perf_counter()
        for rows in (slice(0, 32), slice(32, 64)):
            one.update(send(scores[rows]), send(labels[rows]))
        times.append(time.perf_counter() - started)
    return Outcome(judge([metric.compute()], [remote.compute().get()]), times[1] / times[0])


def train_with_transformers(bob: Any) -> Outcome:
    """Train BERT with the Trainer, which reads losses to report them; the collator sends each batch."""
    import transformers  # noqa: PLC0415

    rows = [dict(zip(text()(), row, strict=True)) for row in zip(*text()().values(), strict=True)]

    def fit(model: Any, collate: Callable[[Any], Any]) -> float:
        with tempfile.TemporaryDirectory() as folder:
            options = {"report_to": [], "logging_strategy": "no", "save_strategy": "no", "disable_tqdm": True}
            args = transformers.TrainingArguments(
                folder, per_device_train_batch_size=1, num_train_epochs=2, use_cpu=True, optim="adamw_torch", **options
            )
            trainer = transformers.Trainer(model, args, train_dataset=rows, data_collator=collate)
            started = time.perf_counter()
            trainer.train()
            return time.perf_counter() - started

    def send(batch: Any) -> Any:
        return {name: tensor.send(bob) for name, tensor in transformers.default_data_collator(batch).items()}

    torch.manual_seed(0)
    model = small_bert()
    remote = copy.deepcopy(model).send(bob)
    at_home = fit(model, transformers.default_data_collator)
    with sy.revealing("the Trainer reports losses"):
        elsewhere = fit(remote, send)
    return Outcome(judge(model.state_dict().values(), remote.get().state_dict().values()), elsewhere / at_home)


def generate(bob: Any, **options: Any) -> Outcome:
    """Generate text with GPT-2, which creates tensors outside of the model and reads whether all texts have ended."""
    torch.manual_seed(0)
    model = small_gpt().eval()
    remote = copy.deepcopy(model).send(bob)
    prompt = {name: tensor for name, tensor in text(labels=None)().items() if name != "labels"}
    there = {name: tensor.send(bob) for name, tensor in prompt.items()}
    times, texts = [], []
    for one, given, place in ((model, prompt, nullcontext()), (remote, there, bob)):
        torch.manual_seed(1)
        started = time.perf_counter()
        with place, sy.revealing("the end of a text"):
            texts.append(one.generate(**given, max_new_tokens=4, pad_token_id=0, **options))
        times.append(time.perf_counter() - started)
    return Outcome(judge([texts[0]], [texts[1].get()]), times[1] / times[0])


def train_with_peft(bob: Any, sends_first: bool) -> Outcome:
    """Train the LoRA layers of BERT; they may be added to a model that is on the worker already."""
    import peft  # noqa: PLC0415

    def add_layers(model: Any) -> Any:
        torch.manual_seed(2)
        return peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["query", "value"]))

    torch.manual_seed(0)
    model = small_bert()
    remote = copy.deepcopy(model)
    model = add_layers(model)
    # The second ``send`` sends the new layers.
    remote = add_layers(remote.send(bob)).send(bob) if sends_first else add_layers(remote).send(bob)
    batch = text()()
    times = []
    for one, given in ((model, batch), (remote, {name: tensor.send(bob) for name, tensor in batch.items()})):
        torch.manual_seed(1)
        started = time.perf_counter()
        optimizer = torch.optim.AdamW([p for p in one.parameters() if p.requires_grad], lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            one(**given).loss.backward()
            optimizer.step()
        times.append(time.perf_counter() - started)
    return Outcome(judge(model.state_dict().values(), remote.get().state_dict().values()), times[1] / times[0])


def train_with_opacus(bob: Any) -> Outcome:
    """Train with gradients per sample and noise; ``with bob:`` creates the noise on the worker."""
    from opacus.grad_sample import GradSampleModule  # noqa: PLC0415
    from opacus.optimizers import DPOptimizer  # noqa: PLC0415

    torch.manual_seed(0)
    model, data = mlp(), digits()
    remote = copy.deepcopy(model).send(bob)
    times = []
    for one, place, given in ((model, nullcontext(), data), (remote, bob, {n: t.send(bob) for n, t in data.items()})):
        torch.manual_seed(1)
        started = time.perf_counter()
        with place:
            wrapped = GradSampleModule(one)
            sgd = torch.optim.SGD(wrapped.parameters(), lr=0.1)
            optimizer = DPOptimizer(sgd, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=len(data["x"]))
            for _ in range(2):
                optimizer.zero_grad()
                nn.functional.cross_entropy(wrapped(given["x"]), given["y"]).backward()
                optimizer.step()
        times.append(time.perf_counter() - started)
    return Outcome(judge(model.state_dict().values(), remote.get().state_dict().values()), times[1] / times[0])


def run_layers_of_opacus(bob: Any) -> Outcome:
    """Run opacus' own LSTM and attention, forward and backward."""
    from opacus.layers import DPLSTM, DPMultiheadAttention  # noqa: PLC0415

    torch.manual_seed(0)
    expected, found, x = [], [], torch.randn(3, 6, 4)
    for layer, call in (
        (DPLSTM(4, 5, 1), lambda one, x: one(x)),
        (DPMultiheadAttention(4, 2), lambda one, x: one(x, x, x)),
    ):
        remote = copy.deepcopy(layer).send(bob)
        for one, given, results in ((layer, x, expected), (remote, x.send(bob), found)):
            result = call(one, given)[0]
            result.sum().backward()
            results += [result, *[p.grad for p in one.parameters() if p.grad is not None]]
    return Outcome(judge(expected, [pointer.get() for pointer in found]))
