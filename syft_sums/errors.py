"""The errors of sums of several workers."""

from __future__ import annotations

from syft_core.exceptions import SyftError, Text, WorkerError


class SumError(SyftError, ValueError):
    """A sum of several workers cannot be computed."""

    too_few = Text(
        "cannot sum round {round}: {left} of {size} workers are left, and {quorum} must take part to the end{lost}; "
        "{advice}"
    )
    roster = Text("cannot begin the study {name!r}: {why}; {advice}")
    false_statement = Text(
        "cannot sum round {round}: the answer of {worker!r} is not valid ({why}); ask its owner to update it, or leave "
        "it out"
    )
    lost_seed = Text(
        "cannot sum round {round}: the seed of {worker!r} cannot be rebuilt from its shares, so it, or a worker that "
        "gave a share, did not follow the protocol; repeat it as a new round without that worker"
    )
    evidence = Text("cannot verify {path}: {why}; ask for the file again")


class SumRefusedError(WorkerError, PermissionError):
    """A worker does not take part in a sum."""

    because = Text("cannot take part in a sum as worker {worker!r}: {why}; {advice}")


class SumRuleError(WorkerError, ValueError):
    """A rule about sums cannot be used as it was written."""

    condition = Text("cannot use the rule {name!r} for sums: {why}; correct it")
    taken = Text("cannot add the rule {name!r} for sums: there is one of this name; choose another name, or revoke it")
    unknown = Text("cannot find the rule {name!r} for sums of worker {worker!r}: there is none; list `worker.studies`")
    ledger = Text(
        "cannot use rules for sums on worker {worker!r}: it has no ledger file, and could repeat a round after a "
        'restart; give it one: `ledger = "ledger.jsonl"` in its configuration, or `ledger=Ledger(id, path)`'
    )
