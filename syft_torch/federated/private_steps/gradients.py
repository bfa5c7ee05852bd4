"""The sum of the clipped gradients of single samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch.func import grad, vmap

from syft_core.plans.interpreter import clear, fill, read, replay
from syft_core.plans.program import Operation
from syft_core.values import Args, Kwargs, Nested, Tensor
from syft_torch.federated.losses import Loss
from syft_torch.federated.private_steps.guards import replace_invalid
from syft_torch.federated.private_steps.kernels import KERNELS, MAX_WHOLE, SampleGradients, Whole
from syft_torch.federated.private_steps.samples import Followed

MARGIN = 1e-5
"""How far below the clip norms are kept: float32 rounds them."""


class ClippedGradients:
    """Computes the clipped gradients of a loss in which samples do not depend on each other.

    If each parameter is used once, and by an operation that has a kernel, one backward pass to the outputs of these
    operations is enough. Otherwise the gradient of each sample is computed by itself.
    """

    def __init__(self, loss: Loss, parameters: int, followed: Followed, clip: float) -> None:
        self._loss, self._parameters, self._followed = loss, parameters, followed
        self._limit = clip * (1 - MARGIN)

    def sum_up(self, parameters: Sequence[Tensor], fixed: Sequence[Tensor], batch: Sequence[Tensor]) -> list[Tensor]:
        """Return the sum for each parameter; a sample whose gradient is not finite counts as zeros."""
        values = [parameter.detach() for parameter in parameters]
        if self._followed.is_short:
            return self._sum_by_kernels(values, fixed, batch)
        return self._sum_one_by_one(values, fixed, batch)

    def _find_factors(self, squares: Tensor, flags: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the factor of each sample, and whether it counts: all flags say so, and its norm is finite."""
        norms = squares.sqrt()
        is_valid = norms.isfinite()
        for flag in flags:
            is_valid = is_valid.logical_and_(flag)
        return torch.where(is_valid, (self._limit / norms).clamp_(max=1.0), 0.0), is_valid

    # --- by book-keeping

    def _sum_by_kernels(self, values: list[Tensor], fixed: Sequence[Tensor], batch: Sequence[Tensor]) -> list[Tensor]:
        kept: list[tuple[Operation, Args, Kwargs, Tensor]] = []
        flags: list[Tensor] = []
        length = len(batch[0])
        run = partial(self._run, kept, flags, length)
        loss = replay(self._loss.program, (*values, *fixed, *batch), run)
        scale = loss.new_full((), length if self._followed.kind == "mean" else 1)
        outputs = torch.autograd.grad(loss, [output for *_, output in kept], scale, allow_unused=True)
        found: dict[int, SampleGradients] = {}
        with torch.no_grad():
            for (operation, args, kwargs, _), output in zip(kept, outputs, strict=True):
                if output is not None:
                    found.update(self._find(operation, args, kwargs, output))
            squares = loss.new_zeros(length, dtype=torch.float64)
            for each in found.values():
                squares.add_(each.squares)
            factors, is_valid = self._find_factors(squares, flags)
            fitting = factors.to(values[0].dtype)
            return [
                found[place].sum_up(fitting if value.dtype == fitting.dtype else factors.to(value.dtype), is_valid)
                if place in found
                else torch.zeros_like(value)
                for place, value in enumerate(values)
            ]

    def _find(self, operation: Operation, args: Args, kwargs: Kwargs, output: Tensor) -> dict[int, SampleGradients]:
        roles = dict(self._followed.kernels[operation.place])
        kernel = KERNELS[operation.step.op]
        given = {name: _detach(value) for name, value in kernel.bind(args, kwargs).items()}
        return {roles[name]: found for name, found in kernel.find(given, output, list(roles)).items()}

    def _run(
        self,
        kept: list[tuple[Operation, Args, Kwargs, Tensor]] | None,
        flags: list[Tensor],
        length: int,
        operation: Operation,
        operands: Sequence[Nested],
    ) -> Nested:
        args, kwargs = fill(operation, read(operation, operands))
        if operation.op is None:
            return operation.run(*args, **kwargs)
        followed = self._followed
        if operation.place in followed.guards:
            args, kwargs = replace_invalid(operation.op.name, tuple(args), kwargs, length, flags)
        if operation.place in followed.out_of_place:
            kwargs = {**kwargs, "inplace": False}
        result = clear(operation, operation.run(*args, **kwargs))
        if kept is not None and operation.place in followed.kernels:
            if not result.requires_grad:
                result = result.detach().requires_grad_()
            kept.append((operation, tuple(args), kwargs, result))
        return result

    # --- one by one

    def _sum_one_by_one(self, values: list[Tensor], fixed: Sequence[Tensor], batch: Sequence[Tensor]) -> list[Tensor]:
        bytes_of_one = sum(value.nbytes for value in values)
        count = max(1, MAX_WHOLE // max(bytes_of_one, 1))
        total = [torch.zeros_like(value) for value in values]
        for start in range(0, len(batch[0]), count):
            part = [each[start : start + count] for each in batch]
            for known, more in zip(total, self._sum_chunk(values, fixed, part), strict=True):
                known.add_(more)
        return total

    def _sum_chunk(self, values: list[Tensor], fixed: Sequence[Tensor], batch: Sequence[Tensor]) -> list[Tensor]:
        def compute(parameters: tuple[Tensor, ...], *sample: Tensor) -> tuple[Tensor, Tensor]:
            flags: list[Tensor] = []
            alone = [part.unsqueeze(0) for part in sample]
            loss = replay(self._loss.program, (*parameters, *fixed, *alone), partial(self._run, None, flags, 1))
            is_valid = torch.ones(1, dtype=torch.bool, device=loss.device)
            for flag in flags:
                is_valid = is_valid.logical_and(flag)
            return loss, is_valid.squeeze(0)

        one = vmap(grad(compute, has_aux=True), in_dims=(None, *[0] * len(batch)), randomness="different")
        found, has_valid_values = one(tuple(values), *batch)
        with torch.no_grad():
            rows = [Whole(each) for each in found]
            squares = sum([row.squares for row in rows], values[0].new_zeros(len(batch[0]), dtype=torch.float64))
            factors, is_valid = self._find_factors(squares, [has_valid_values])
            return [row.sum_up(factors.to(value.dtype), is_valid) for row, value in zip(rows, values, strict=True)]


def _detach(value: Nested) -> Nested:
    return value.detach() if isinstance(value, torch.Tensor) else value
