"""Meter operations: refuse results that would not fit, and compare those that were computed with their estimates."""

from __future__ import annotations

from math import inf
from time import thread_time
from typing import Any

from syft_core.exceptions import OperationNotAllowedError
from syft_core.hook.chain import plain_end
from syft_core.hook.rules import leaves
from syft_core.hook.signatures import note, signature_of
from syft_core.messages import Placed
from syft_core.values import Nested
from syft_core.workers.party.reservations import Amounts, Reservation
from syft_core.workers.party.status import OUT
from syft_core.workers.party.store import Stored, keeps_gradient
from syft_core.workers.party.worker import Stage, Worker
from syft_core.workers.road.execution import Execution, restore_if_failed
from syft_worker.accounts import Account, Accounts
from syft_worker.estimates import Estimate, infer, write_signature
from syft_worker.incidents import Incidents
from syft_worker.measures import bytes_beyond, bytes_of, ends_of
from syft_worker.recorder import UsageRecorder


class Meter:
    """The stage *meter* of operations on a worker with quotas."""

    def __init__(self, worker: Worker, accounts: Accounts, recorder: UsageRecorder, incidents: Incidents) -> None:
        self._worker, self._accounts, self._recorder, self._incidents = worker, accounts, recorder, incidents
        self._known = accounts.known

    def run(self, proceed: Stage, execution: Execution) -> Nested:
        """Run an operation, unless its sender may not run it with these operands, or its result exceeds the quota."""
        op, sender = execution.op, execution.peer
        if sender.id == self._worker.id and not sender.behalf:
            return proceed(execution)
        account, who = self._known.get(sender) or self._accounts.find(sender)
        known = execution.memo.get(Estimate)
        if known is None or self._incidents.by_command or account.allowance.tier == "reviewed":
            known = self._require_allowed(account, execution, known)
        size, count = (known.bytes, known.count) if known.is_inferred else self._guess(account, execution)
        count = 0 if op.inplace or execution.status & OUT else count
        if account.held or account.objects + count > account.most_objects or account.bytes + size > account.most_bytes:
            self._accounts.require(account, op.name, count, size)
        account.objects += count  # At once: a plan runs many operations.
        account.bytes += size
        recorder = self._recorder
        if account.has_rates and not recorder.depth:
            recorder.since = thread_time()
        recorder.begin(who, known.encoded)
        try:
            if known.is_inferred and op.process is None:
                answer = proceed(execution)
            else:
                answer = self._run_special(proceed, account, execution, Amounts(count, size))
        finally:
            if not recorder.depth:
                recorder.end(account)
        if type(answer) is Placed and known.measured >= 0:
            entry = self._worker.object_store.entry(answer.id)
            if entry.value.nbytes <= known.measured:
                account.leases += 1
                entry.is_counted = True
                return answer
        if answer is not None:
            self._compare(account, execution, known, Amounts(count, size), answer)
        return answer

    def _require_allowed(self, account: Account, execution: Execution, known: Estimate | None) -> Estimate:
        """Raise if a user may not run an operation with these operands; return the estimate of its signature."""
        op = execution.op
        if account.allowance.tier == "reviewed" != op.tier:
            why = f"user {account.user!r} may run only reviewed operations; ask the owner"
            raise OperationNotAllowedError.refused_by("worker", op.name, why)
        if known is None:
            return self._describe(account, execution)
        self._incidents.require_allowed(account.user, known.signature)
        return known

    def _describe(self, account: Account, execution: Execution) -> Estimate:
        """Return the estimate of a signature, after recording it: the inference itself may crash."""
        op = execution.op
        signature = write_signature(op, signature_of(op, execution.args, execution.kwargs))
        known = Estimate(signature, signature.encode(errors="replace"))
        self._incidents.require_allowed(account.user, signature)
        self._recorder.record(execution.peer, known.encoded)
        infer(execution, known)
        return note(execution.memo, Estimate, known)

    def _guess(self, account: Account, execution: Execution) -> tuple[int, int]:
        op, framework = execution.op, execution.framework
        if not op.accumulates:
            return 0, 1 if execution.count < 0 else execution.count
        roots, inputs, is_final = framework.parse_backward(op, execution.args, execution.kwargs)
        ends = [end for leaf in leaves((roots, inputs)) if (end := plain_end(leaf)) is not None]
        found = framework.find_leaves(ends) if is_final else None
        if found is None:
            account.bytes = inf  # It is counted before the next command that needs some.
        return bytes_beyond([leaf for leaf in found or () if keeps_gradient(leaf) and leaf.grad is None], ()), 0

    def _run_special(self, proceed: Stage, account: Account, execution: Execution, needed: Amounts) -> Nested:
        """Run an operation that yields its turn, or whose memory cannot be inferred.

        The former keeps its reservation. The latter is undone if an operand that it writes to grows too large.
        """
        if execution.op.process is not None:
            with Reservation(account.held, needed):
                return proceed(execution)
        ends = [] if execution.op.accumulates else execution.ends
        before = sum(map(bytes_of, ends))
        with restore_if_failed(ends):
            answer = proceed(execution)
            if (growth := sum(map(bytes_of, ends)) - before) > 0:
                account.bytes += growth
                self._accounts.require(account, execution.op.name)
        return answer

    def _compare(
        self, account: Account, execution: Execution, known: Estimate, estimated: Amounts, answer: Nested
    ) -> None:
        """Compare the results of an operation with their estimate, and charge the difference to the user."""
        accounts, store, kind = self._accounts, self._worker.object_store, type(answer)
        if kind is Placed or kind is Stored:
            entries: list[Stored] = [store.entry(answer.id) if kind is Placed else answer]
        else:
            parts = [part for part in leaves(answer) if type(part) is Placed or type(part) is Stored]
            entries = [part if type(part) is Stored else store.entry(part.id) for part in parts]
        if kind is not Stored:  # Results of the steps of a plan have no ids.
            for entry in entries:
                account.leases += 1
                entry.is_counted = True
        if known.measured >= 0 and len(entries) == 1 and entries[0].value.nbytes <= known.measured:
            return
        values = [entry.value for entry in entries]
        actual = bytes_beyond(values, ends_of((execution.args, execution.kwargs)))
        more = Amounts(max(len(entries) - estimated.objects, 0), max(actual - estimated.bytes, 0))
        if known.is_inferred:
            known.bytes = max(known.bytes, actual)
            known.measured = min(_measure_plain(execution, values), known.bytes)
        elif any(getattr(end, "requires_grad", False) for end in ends_of(values)):
            account.bytes = inf  # Memory kept by its graph is counted before the next command that needs some.
        accounts.add(account, execution.op.name, entries, more)


def _measure_plain(execution: Execution, values: list[Any]) -> int:
    """Return the size of a single result whose form is known, so that it determines the size; otherwise -1."""
    if len(values) != 1 or execution.framework.form_of(values[0]) is None:
        return -1
    return int(values[0].nbytes)
