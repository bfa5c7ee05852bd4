"""The training loop of a worker with ``SampleDP``: batches that nobody else knows, clipped gradients, and noise.

What it returns is a function of the noisy gradients, the weights received, and the number of samples: it computes no
loss, metric or statistic of the data, and its optimizer sees noisy gradients only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from syft_core.values import Nested, Tensor
from syft_torch.federated import optimizers
from syft_torch.federated.errors import FederatedError
from syft_torch.federated.loops import Pull, Settings, clip
from syft_torch.federated.losses import Loss, ModelForms, Programs
from syft_torch.federated.private_steps.gradients import ClippedGradients
from syft_torch.federated.private_steps.noise import NoiseStream
from syft_torch.federated.private_steps.sample_dp import Draws, SampleDP
from syft_torch.federated.private_steps.samples import follow

_TRIED = 2
"""Number of samples of the trial."""


def require_apart(programs: Programs, fixed: int, parts: int, settings: Settings) -> None:
    """Raise here if workers would refuse to train with a recorded loss and ``SampleDP``."""
    if settings.privacy is not None:
        losses = [Loss(program, parts) for program in programs.all]
        PrivateSteps(losses, ModelForms(programs.all[0], fixed, parts), settings, settings.privacy)


class PrivateSteps:
    """Trains with one loss, of which it has checked that samples do not depend on each other."""

    def __init__(self, losses: Sequence[Loss], shape: ModelForms, settings: Settings, privacy: SampleDP) -> None:
        if settings.optimizer == optimizers.SEARCHING:
            why = f"{settings.optimizer} computes the loss several times in a step"
            raise FederatedError.privacy(why, "use another optimizer, e.g. `optim.SGD`")
        self._shape, self._settings, self._privacy = shape, settings, privacy
        followed = follow(losses, shape)
        self._gradients = ClippedGradients(losses[0], len(shape.parameters), followed, privacy.clip)
        self._try()

    def draws(self, samples: int) -> Draws:
        """Return how a worker with this number of samples draws its batches."""
        return self._privacy.plan(samples, self._settings.epochs, self._settings.batch_size)

    def _try(self) -> None:
        """Raise if the gradients of single samples cannot be computed, which does not depend on values."""
        trained, fixed, parts = (
            [
                torch.zeros([_TRIED if side == -1 else side for side in known.shape], dtype=known.dtype)
                for known in forms
            ]
            for forms in (self._shape.forms, self._shape.fixed, self._shape.parts)
        )
        try:
            with torch.enable_grad():
                self._gradients.sum_up(trained, fixed, parts)
        except Exception as error:
            why = f"the gradients of single samples cannot be computed ({type(error).__name__})"
            advice = "use each parameter once, in linear, convolutional, embedding or normalization layers"
            raise FederatedError.privacy(why, advice) from error

    def rehearse(self, trained: Sequence[Tensor], fixed: Sequence[Tensor], parts: Sequence[Tensor]) -> None:
        """Compute the gradients of a large batch, for its forms and its memory."""
        most = self.draws(len(parts[0])).most
        self._gradients.sum_up(trained, fixed, [part[:most] for part in parts])

    def train(
        self, weights: Tensor, fixed: Sequence[Tensor], parts: Sequence[Tensor], correction: Tensor | None
    ) -> Iterator[Nested]:
        """Train; yield None after each part of a batch, and at last the difference to the weights, and no loss."""
        settings, layout, stream = self._settings, self._shape.layout, NoiseStream()
        flat = weights.detach().clone()
        trained = [tensor.requires_grad_() for tensor in layout.split_apart(flat)]
        optimizer = optimizers.make(settings.optimizer, settings.groups, trained)
        pull = Pull(self._shape, settings.proximal, weights, correction)
        samples = len(parts[0])
        draws = self.draws(samples)
        for _ in range(draws.steps):
            total = torch.zeros_like(flat)
            for places in stream.draw_batch(samples, draws.rate).split(draws.most):
                batch = [part.index_select(0, places.to(part.device)) for part in parts]
                if len(places):
                    total.add_(layout.join(self._gradients.sum_up(trained, fixed, batch)))
                yield None
            noisy = stream.add_noise(total, self._privacy.sigma, draws.expected)
            for parameter, gradient in zip(trained, layout.split(noisy.to(layout.dtype)), strict=True):
                parameter.grad = gradient
            pull.apply(trained)
            if settings.clip_grad is not None:
                torch.nn.utils.clip_grad_norm_(trained, settings.clip_grad)
            optimizer.step()
        if not layout.is_uniform:
            flat = layout.join(trained)
        yield clip(flat.sub_(weights), settings.clip, layout), torch.tensor(torch.nan, dtype=torch.float64)
