"""The errors of release requests and rules."""

from __future__ import annotations

from syft_core.exceptions import GetNotPermittedError, Text, WorkerError


class ReleasePendingError(GetNotPermittedError):
    """The owner of a worker has not decided on a release request yet."""

    to_fetch = Text(
        "cannot get object {id!r} from worker {worker!r} as {user!r}: request {request} is waiting for its owner; try "
        "again later, or wait with `request.wait()`",
        order="user id worker request",
    )
    still = Text(
        "cannot continue: request {request} to worker {worker!r} is waiting for its owner; wait longer, or look again "
        "with `request.state`",
        order="request worker",
    )
    in_time = Text(
        "cannot continue: the owner of worker {worker!r} has not decided on request {request} within {seconds:g} "
        "seconds; give owners more time, e.g. `{more}`, and ask again",
        order="request worker seconds more",
    )


class ReleaseDeniedError(GetNotPermittedError):
    """The owner of a worker has denied a release request, or it can no longer be decided."""

    to_fetch = Text(
        "cannot get object {id!r} from worker {worker!r} as {user!r}: its owner denied request {request}{answer}; ask "
        "again with another reason, or for less",
        order="user id worker request answer",
    )
    denied = Text(
        "cannot continue: the owner of worker {worker!r} denied request {request}{answer}; ask again with another "
        "reason, or for less",
        order="request worker answer",
    )
    lapsed = Text(
        "cannot continue: request {request} lapsed, because worker {worker!r} was started again and has no store; ask "
        "again",
        order="request worker",
    )
    expired = Text(
        "cannot continue: request {request} to worker {worker!r} expired, because it was not decided on or not fetched "
        "in time; ask again",
        order="request worker",
    )
    granted = Text(
        "cannot fetch request {request} from worker {worker!r}: its owner has made a rule of it; fetch the results "
        "that the rule permits",
        order="request worker",
    )
    used = Text(
        "cannot fetch request {request} from worker {worker!r}: it was fetched already, and an approval is good for "
        "one fetch; ask again",
        order="request worker",
    )


def require_not_denied(state: str, answer: str, request: str, worker: object) -> None:
    """Raise if a request in this state can never be fetched, with what the owner says about it."""
    if state == "denied":
        raise ReleaseDeniedError.denied(request, worker, f" ({answer})" if answer else "")
    if state == "expired":
        raise ReleaseDeniedError.expired(request, worker)
    if state == "lapsed":
        raise ReleaseDeniedError.lapsed(request, worker)


class ReleaseError(WorkerError, ValueError):
    """A release request is not valid."""

    unknown = Text(
        "cannot find request {request!r}: worker {worker!r} has no such request for you to see; list them with "
        "`worker.requests()` or, as the owner, with the command 'syft-core requests list'"
    )
    untagged = Text(
        "cannot make a rule from request {request} to worker {worker!r}: it is not known which tagged "
        "data of the worker is in it; name the tags, e.g. with `--computed-from`"
    )
    terms = Text("cannot ask worker {worker!r} for a study: {why}; correct it")
    being_fetched = Text(
        "cannot take back the approval of request {request} of worker {worker!r}: it is being fetched; deny the next "
        "request"
    )
    decision = Text("cannot make the decision {decision!r}: it is not one of {known}; choose one of them")
    not_owner = Text(
        "cannot decide on worker {worker!r} as {user!r}: only its owner may; connect with the token of an "
        "administrator",
        order="user worker",
    )
    decided = Text(
        "cannot decide on request {request} of worker {worker!r}: it was {state} already; wait for a new request"
    )
    differs = Text(
        "cannot decide on request {request} of worker {worker!r}: it is not what was reviewed, because the digest "
        "differs; review it again"
    )
    nothing = Text("cannot ask worker {worker!r} for a release: the request names no object; name at least one")
    too_many = Text(
        "cannot ask worker {worker!r} for another release as {user!r}: {most} requests are waiting for its owner; "
        "wait until some are decided",
        order="user worker most",
    )
    on_behalf = Text(
        "cannot ask worker {worker!r} for a release as {user!r}: a release is for the peer who asks; let that peer ask",
        order="user worker",
    )
    elsewhere = Text(
        "cannot ask worker {worker!r} to release object {id!r}: its data is on another worker; ask that worker",
        order="id worker",
    )


class ApprovalError(WorkerError, ValueError):
    """A rule cannot be used."""

    condition = Text("cannot use the rule {name!r}: {why}; see `[rules.NAME]` in `syft-core worker --example`")
    unknown = Text("cannot find the rule {name!r}: worker {worker!r} has none of that name; {advice}")
    taken = Text("cannot add the rule {name!r}: there is one of that name; choose another name, or revoke that one")
    contradicts = Text(
        "cannot add the rule {name!r}: {other!r} is for the same user, form and data, so it would not be "
        "clear which limits apply; revoke {other!r} first"
    )
    matches_nothing = Text("cannot add the rule {name!r}: it could never be used, because {why}; correct it")
    revoked = Text("cannot revoke the rule {name!r}: it was revoked already; nothing is left to do")
