from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from syft_core import exceptions
from syft_core.exceptions import SyftError
from syft_core.packages import PACKAGES

FEATURES = (
    "syft_core.network",
    "syft_core.plans",
    "syft_mpc",
    "syft_ray",
    "syft_sums",
    "syft_worker",
    "syft_worker.desk",
)
CLASSES = {
    name: cls
    for module in (exceptions, *[import_module(f"{feature}.errors") for feature in FEATURES])
    for name, cls in vars(module).items()
    if inspect.isclass(cls) and issubclass(cls, Exception) and cls.__module__ == module.__name__
}

# Every way to write a message, with the whole text it gives.
TEXTS = {
    ("MessageSizeError", "too_large"): (
        ("2,000", "far", "1,000"),
        "cannot send a message of 2,000 bytes to worker 'far': the limit is 1,000; send it in parts, or ask its owner "
        "for more (`bytes` of the user, or `limits.message_bytes`)",
    ),
    ("MessageSizeError", "too_many"): (
        ("far", "1,000"),
        "cannot send this message to worker 'far': with others of the user that are under way it has more bytes than "
        "the limit of 1,000; send it again when they have arrived",
    ),
    ("MessageSizeError", "no_memory"): (
        ("far",),
        "cannot send this message to worker 'far': the worker has no memory for it at the moment; send it again later, "
        "or in parts",
    ),
    ("AuthenticationError", "unusable"): (
        ("the token", "it is empty"),
        "cannot use the token: it is empty; copy it again, in one line",
    ),
    ("ProxyError", "answered"): (
        (503,),
        "cannot reach the worker: a proxy answers with HTTP status 503; wait until the worker is running",
    ),
    ("ConnectionLostError", "during"): (
        ("sending", TimeoutError("timed out")),
        "cannot continue sending: the connection broke (TimeoutError('timed out')); connect again",
    ),
    ("ConnectionLostError", "closed"): (
        (),
        "cannot continue receiving: the other end closed the connection; connect again",
    ),
    ("ConnectionLostError", "disconnected"): (
        ("far",),
        "cannot use worker 'far': the connection was closed; call `connect()` first",
    ),
    ("ConnectionLostError", "malformed"): (
        ("its envelope is wrong",),
        "cannot read a message: its envelope is wrong; use the same release of syft-core at both ends, and "
        "connect again",
    ),
    ("ConnectionLostError", "unreachable"): (
        ("wss://far:8777", 60, "refused"),
        "cannot reach the worker at wss://far:8777: no connection for 60 seconds (refused); check the address, that "
        "the worker is running, and whether it uses TLS",
    ),
    ("ActorLostError", "of"): (
        ("worker 'ray-0'", "actor 1 of 2", "has ended", "start new ones"),
        "cannot reach worker 'ray-0': actor 1 of 2 has ended; start new ones",
    ),
    ("RayStartError", "missing"): (
        ("pip install 'ray>=2.40'",),
        "cannot start workers on Ray: Ray is not installed; run `pip install 'ray>=2.40'`",
    ),
    ("RayStartError", "local"): (
        ("the node timed out", "/tmp/ray/session_latest/logs"),
        "cannot start Ray on this machine: the node timed out. Ray does not say more: on a busy machine, one of its "
        "processes, the raylet, ends if others are not ready within 15 seconds, a limit that cannot be changed. Stop "
        'other programs and try again, or start Ray yourself (`ray start --head`) and pass `address="auto"`; '
        "its logs are in /tmp/ray/session_latest/logs",
    ),
    ("RayStartError", "cluster"): (
        ("10.0.0.1:6379", "connection refused"),
        "cannot connect to Ray at '10.0.0.1:6379': connection refused; check the address, that `ray status` works "
        "there, and that both ends have the same versions of Python and Ray",
    ),
    ("RayStartError", "actors"): (
        (4, 120.0, 2),
        "cannot start 4 actors on Ray: after 120 seconds, 2 run; each needs one free CPU and the packages of this "
        "program: look at `ray status`, or pass a smaller number, `actors=...`",
    ),
    ("RayStartError", "failed"): (
        ("`setup` raised KeyError",),
        "cannot start workers on Ray: `setup` raised KeyError; see the traceback above",
    ),
    ("RayStartError", "wrong"): (
        ("count is -1", "pass a number"),
        "cannot start workers on Ray: count is -1; pass a number",
    ),
    ("SessionLostError", "on"): (
        ("far", "the worker was started again"),
        "cannot continue the session on worker 'far': the worker was started again; unpublished objects are gone: find "
        "the published ones with `search`, and send the others again",
    ),
    ("ProtocolError", "needs_parties"): (
        ("snn_relu", 2, 3),
        "cannot run 'snn_relu' with 3 parties: it needs 2; share the values among 2 workers",
    ),
    ("CheatingError", "by"): (
        ("bob",),
        "cannot finish the protocol: worker 'bob' sent values that fail authentication, and there is no result; it "
        "cheats, or the client used shares that do not belong together, or the provider dealt wrong ones: share the "
        "values again, without this worker",
    ),
    ("AddressError", "wrong"): (
        ("wss://far:8777", "there is no host 'far'", "check the name"),
        "cannot connect to wss://far:8777: there is no host 'far'; check the name",
    ),
    ("AuthenticationError", "refused"): (
        ("wss://far:8777", "the token has expired"),
        "cannot connect to wss://far:8777: the token has expired; ask the owner for a token: `token=...`",
    ),
    ("QuotaExceededError", "amount"): (
        ("run 'toy.outer'", "ana", "bytes", 4_000_000, 1_000_000),
        "cannot run 'toy.outer': user 'ana' would then have 4,000,000 bytes on the worker, and the limit is 1,000,000; "
        "delete pointers that you no longer need and call `flush()`, or ask the owner for more",
    ),
    ("QuotaExceededError", "copies"): (
        ("fetch 2 objects", "ana", 4_000_000, 1_000_000),
        "cannot fetch 2 objects: the objects would have 4,000,000 bytes when they leave, and the limit for user 'ana' "
        "is 1,000,000; fetch fewer objects at a time; for a view that repeats elements, fetch its base",
    ),
    ("QuotaExceededError", "rate"): (
        ("run 'toy.add'", "ana", "CPU seconds per minute", 10.0, 14.2),
        "cannot run 'toy.add': user 'ana' has used up the 10 CPU seconds per minute; wait 14 seconds, or ask the owner "
        "for more",
    ),
    ("TicketError", "invalid"): (
        ("bob",),
        "cannot accept the ticket of worker 'bob': it was used before, has expired, or was issued for another worker; "
        "repeat the call to get a new one",
    ),
    ("TicketError", "beyond"): (
        ("bob", "Fetch"),
        "cannot execute Fetch for worker 'bob': its ticket does not cover it; a ticket is valid only for the objects "
        "that its client named",
    ),
    ("TicketError", "personal"): (
        ("Introduce", "ana through eve"),
        "cannot execute Introduce for 'ana through eve': it changes what the worker keeps for a client, and only the "
        "client itself may do that; send it for yourself",
    ),
    ("TicketError", "claimed"): (
        ("eve", "ana"),
        "cannot execute a batch of 'eve' on behalf of 'ana': the sender has no ticket of that peer; send it "
        "yourself, or let the peer introduce you",
    ),
    ("TicketError", "too_many"): (
        ("ana", 256),
        "cannot issue a ticket for 'ana': it has 256 unused tickets; try again in a minute",
    ),
    ("TicketError", "missing"): (
        ("alice", "ana"),
        "cannot reach worker 'alice' on behalf of 'ana': there is no ticket for it; send the pointer again, or move "
        "the object",
    ),
    ("AlreadyRegisteredError", "of"): (
        ("table", "'key'"),
        "cannot register 'key' in 'table': it is registered already; register it once, or use another type",
    ),
    ("NotRegisteredError", "of"): (
        ("table", "'key'", ["'kay'", "'keys'"], "add it"),
        "cannot find 'key' in 'table': it is not registered; did you mean 'kay' or 'keys'? otherwise add it",
    ),
    ("DependencyError", "missing"): (
        ("toy", "toylib", "pip install toylib"),
        "cannot load the 'toy' backend: 'toylib' is not installed; run `pip install toylib`",
    ),
    ("DependencyError", "needed"): (
        ("syft_core.testing", "pytest", "pip install pytest"),
        "cannot use syft_core.testing: pytest is not installed; run `pip install pytest`",
    ),
    ("PluginError", "broken"): (
        ("acme", "it has no wheels"),
        "cannot use the plugin 'acme': it has no wheels; run `syft-core plugins` to list all plugins",
    ),
    ("NotTheFrameworkError", "received"): (
        ("ToyHook", "toy", exceptions),
        "cannot hook 'syft_core.exceptions': ToyHook takes the toy module itself; "
        "write `import toy` and `ToyHook(toy)`",
    ),
    ("PlanError", "at"): (
        ("step", "train.py", 7, "reads a value", "return the tensor instead"),
        "cannot record the plan 'step': train.py:7 reads a value; return the tensor instead",
    ),
    ("PlanError", "arguments"): (
        ("step", "float[2]", "float[3]"),
        "cannot run the plan 'step': it was recorded for float[2], but was called with float[3]; record it for these "
        "arguments, or for any length with -1 in `args_shape`",
    ),
    ("PlanError", "other_lengths"): (
        ("3 < 4", True),
        "cannot run the plan: 3 < 4 was True when it was recorded, which decides its steps; record it with arguments "
        "of these lengths and strides",
    ),
    ("OperandChangedError", "during"): (
        ("train", "bob"),
        "cannot finish 'train' on worker 'bob': meanwhile another command changed what it uses, or who may have that; "
        "run it again when nobody changes its operands",
    ),
    ("ConnectionLostError", "stopping"): (
        ("bob",),
        "cannot continue on worker 'bob': the worker is stopping; repeat the command when it is served again",
    ),
    ("PlanError", "replaced"): (
        ("step", 5),
        "cannot run the plan 'step': object 5, a part of its state, is not the one it was sent with; send the plan "
        "again",
    ),
    ("PlanError", "other_state"): (
        ("step", 2, "has a gradient, unlike"),
        "cannot run the plan 'step': part 2 of its state has a gradient, unlike when the plan was recorded; record it "
        "again with `plan.build(...)`, and send it",
    ),
    ("PlanError", "changed"): (
        ("step", "lr"),
        "cannot run the plan 'step': 'lr', a setting of its models or a variable that it reads, changed after it was "
        "recorded; undo the change, or fetch the plan with `get()` and send it again",
    ),
    ("PlanError", "trained"): (
        ("step", "bob"),
        "cannot send the plan 'step' to worker 'bob' again: its state has changed both here and there; fetch it with "
        "`get()` first, or record it again to send what is here",
    ),
    ("PlanError", "not_built"): (
        ("step",),
        "cannot send the plan 'step': it is not recorded yet; call `plan.build(...)` with example tensors",
    ),
    ("PlanError", "elsewhere"): (
        ("step",),
        "cannot serialize the plan 'step': a part of its state is on a worker; fetch the model first, or send the plan "
        "there with `plan.send(...)`",
    ),
    ("PlanShapesError", "count"): (
        ("step", 1, "missing a required argument: 'y'"),
        "cannot record the plan 'step': `args_shape` has 1 shapes, but the function has other arguments (missing a "
        "required argument: 'y'); give one shape for each argument",
    ),
    ("OperationNotAllowedError", "not_in_table"): (
        ("toy", "toy.savee", ["toy.save"]),
        "cannot run 'toy.savee' on a pointer or another layer: it is not in the toy op table; use toy.save, or "
        "allow it for public data with `hook.attributes.allow(function)`",
    ),
    ("OperationNotAllowedError", "reviewed_without_facts"): (
        ("toy.double",),
        "cannot allow 'toy.double' on private data: what it discloses, writes and reads is not declared; if it "
        'has no side effects, pass `discloses="nothing", writes=frozenset(), reads_beyond=False`, otherwise leave'
        " out `tier`",
    ),
    ("OperationNotAllowedError", "refused_by"): (
        ("PrivateTensor", "toy.item", "its values may not leave; ask its owner"),
        "cannot run 'toy.item' on a PrivateTensor: its values may not leave; ask its owner",
    ),
    ("OperationNotAllowedError", "without_rule"): (
        ("FixedTensor", "toy.exp", "exp", False),
        "cannot run 'toy.exp' on a FixedTensor: the layer encodes its values and has no rule for it; fetch the value "
        "and decode it first, for instance `x.get().float_precision()`; to support it, give FixedTensor a rule called "
        "'exp'",
    ),
    ("OperationNotAllowedError", "no_numeric_wrapper"): (
        ("toy",),
        "cannot wrap this layer: it encodes values, and the toy backend has no numeric wrapper; use it without a "
        "wrapper: `layer.on(x, wrap=False)`",
    ),
    ("MixedLayersError", "plain"): (
        ("FixedTensor",),
        "cannot mix a FixedTensor with a plain tensor: FixedTensor does not encode operands by itself; "
        "put the plain tensor under the same layers first",
    ),
    ("MixedLayersError", "wrappers"): (
        ("toy.add",),
        "cannot run 'toy.add': one operand is encoded by a numeric layer and another one is not; "
        "put both under the same layers first",
    ),
    ("MixedLayersError", "frameworks"): (
        ("toy.add", "toy", "blocks"),
        "cannot run 'toy.add': it mixes a toy wrapper with a blocks wrapper; convert one of them to the other "
        "framework first",
    ),
    ("MixedLayersError", "between"): (
        ("toy.add", "ThisTensor", "ThatTensor"),
        "cannot run 'toy.add': it mixes a ThisTensor with a ThatTensor; put both operands under the same layers "
        "first, e.g. `ThisTensor().on(x)`",
    ),
    ("MixedLayersError", "attributes"): (
        ("toy.add", "ScaledTensor", {"scale", "base"}),
        "cannot run 'toy.add': it mixes two ScaledTensors that differ in base, scale; "
        "create both operands with the same base, scale",
    ),
    ("WrapperLeakError", "at"): (
        ("pickle", "save the data instead"),
        "cannot run pickle on a wrapper: a wrapper holds no data of its own; save the data instead",
    ),
    ("PlanMismatchError", "arity"): (
        (2, 3),
        "cannot apply a plan for 2 argument(s) to 3: a plan is for one signature only; build one for this signature",
    ),
    ("PlanMismatchError", "slot"): (
        ("int", "str"),
        "cannot apply a plan for a int to a str: a plan is for one signature only; build one for this signature",
    ),
    ("PureFrameworkTensorFoundError", "in_call"): (
        ("toy.add",),
        "cannot unwrap the arguments of 'toy.add': none of them has a child; call the framework's own function",
    ),
    ("DomainError", "outside"): (
        ("exp", -10.0, 10.0),
        "cannot approximate 'exp': a value lies outside [-10, 10]; "
        "scale the input into that interval or add a piece for it",
    ),
    ("ColumnError", "repeated"): (
        (),
        "cannot describe a table: two of its columns have the same name; rename one",
    ),
    ("ColumnError", "unnamed"): (
        ("this object of worker 'bob'",),
        "cannot select columns by name: this object of worker 'bob' has no column names; use numbers, or select "
        "columns of the table itself",
    ),
    ("ColumnError", "no_mock"): (
        ("object 5 of worker 'bob'",),
        "cannot use a mock: object 5 of worker 'bob' has none; ask its owner to provide one",
    ),
    ("ColumnError", "unknown"): (
        ("aeg", ["age", "ill"]),
        "cannot select column 'aeg': there is none; did you mean 'age'?",
    ),
    ("IdNotUniqueError", "of"): (
        ("bob",),
        "cannot use the id 'bob': it is in use; leave it out to get a new one",
    ),
    ("IdNotUniqueError", "reserved"): (
        ("ages", "bob"),
        "cannot use the id 'ages': worker 'bob' hides objects, and lets only its owner name them; leave it out to get "
        "a new one",
    ),
    ("AlreadyRetrievedError", "because"): (
        ("[a pointer]", "it was fetched by 'me'"),
        "cannot use [a pointer]: it was fetched by 'me'; use the result of that call, or next time fetch a copy: "
        "`p.copy().get()`",
    ),
    ("WorkerNotFoundError", "named"): (
        ("bub", ["bob"]),
        "cannot find worker 'bub': no worker here has this id; did you mean 'bob'? otherwise create it first, "
        "e.g. `sy.VirtualWorker(hook, id='bub')`",
    ),
    ("WorkerIdTakenError", "by"): (
        ("bob", "VirtualWorker"),
        "cannot create worker 'bob': a VirtualWorker has this id; choose another id",
    ),
    ("WorkerIdTakenError", "differs"): (
        ("bob", "serialize"),
        "cannot create worker 'bob': a worker with this id exists, with another 'serialize'; leave the option out"
        " to use that worker, or choose another id",
    ),
    ("WorkerNotPicklableError", "of"): (
        ("bob",),
        "cannot pickle or copy the worker 'bob': it belongs to this process; use its id, or connect to it from the "
        "other process (docs/networking.md)",
    ),
    ("LocalWorkerConflictError", "differs"): (
        ("toy", "bob", "me", ["torch", "numpy"]),
        "cannot hook toy with the local worker 'bob': all hooks of a process share one, and another worker, 'me', is "
        "in use; leave `local_worker` out, or unhook torch and numpy first",
    ),
    ("LocalWorkerConflictError", "is_client"): (
        ("toy", "me", ["torch"]),
        "cannot hook toy with `is_client=False`: all hooks of a process share the local worker 'me', which is a "
        "client; leave `is_client` out, or unhook torch and give `is_client=False` to the first hook",
    ),
    ("NotCollocatedError", "between"): (
        ("toy.add", "bob", "alice"),
        "cannot run 'toy.add': its arguments live on 'bob' and 'alice'; move the first one, e.g. `p = p.move('alice')`",
    ),
    ("NotCollocatedError", "local"): (
        ("toy.add", "bob"),
        "cannot run 'toy.add': its arguments live on 'bob' and in this process; send the local one: `y = "
        "y.send('bob')`, or create it in a block \"with p.location:\"",
    ),
    ("NotCollocatedError", "draw"): (
        ("toy.shuffle", "bob"),
        "cannot run 'toy.shuffle': it would draw from a local generator, which worker 'bob' cannot advance; use the "
        "worker's own: `generator = None`, or draw the numbers here and send them",
    ),
    ("WrapperLeakError", "unseen"): (
        ("a tracer", "leave it out"),
        "cannot use a tracer on a pointer or another layer: the operations run on a worker, where it cannot see them; "
        "leave it out",
    ),
    ("GetNotPermittedError", "to"): (
        ("eve", 7, "bob", "it is private"),
        "cannot get object 7 from worker 'bob' as 'eve': it is private; ask its owner for it with `p.request(\"why\")`",
    ),
    ("ReleasePendingError", "to_fetch"): (
        ("eve", 7, "bob", 3),
        "cannot get object 7 from worker 'bob' as 'eve': request 3 is waiting for its owner; try again later, or wait "
        "with `request.wait()`",
    ),
    ("ReleasePendingError", "still"): (
        (3, "bob"),
        "cannot continue: request 3 to worker 'bob' is waiting for its owner; wait longer, or look again with "
        "`request.state`",
    ),
    ("ReleasePendingError", "in_time"): (
        (3, "bob", 600.0, "patience=3600"),
        "cannot continue: the owner of worker 'bob' has not decided on request 3 within 600 seconds; give owners more "
        "time, e.g. `patience=3600`, and ask again",
    ),
    ("ReleaseDeniedError", "to_fetch"): (
        ("eve", 7, "bob", 3, " (too detailed)"),
        "cannot get object 7 from worker 'bob' as 'eve': its owner denied request 3 (too detailed); ask again with "
        "another reason, or for less",
    ),
    ("ReleaseDeniedError", "denied"): (
        (3, "bob", " (too detailed)"),
        "cannot continue: the owner of worker 'bob' denied request 3 (too detailed); ask again with another reason, or "
        "for less",
    ),
    ("ReleaseDeniedError", "expired"): (
        ("7", "bob"),
        "cannot continue: request 7 to worker 'bob' expired, because it was not decided on or not fetched in time; ask "
        "again",
    ),
    ("ReleaseDeniedError", "lapsed"): (
        (3, "bob"),
        "cannot continue: request 3 lapsed, because worker 'bob' was started again and has no store; ask again",
    ),
    ("ReleaseDeniedError", "granted"): (
        ("abc", "bob"),
        "cannot fetch request abc from worker 'bob': its owner has made a rule of it; fetch the results that the rule "
        "permits",
    ),
    ("ReleaseDeniedError", "used"): (
        (3, "bob"),
        "cannot fetch request 3 from worker 'bob': it was fetched already, and an approval is good for one fetch; ask "
        "again",
    ),
    ("SumError", "too_few"): (
        (3, 2, 4, 3, "; east: it has no result", "try again"),
        "cannot sum round 3: 2 of 4 workers are left, and 3 must take part to the end; east: it has no result; "
        "try again",
    ),
    ("SumError", "roster"): (
        ("icu", "a key is malformed", "ask each worker for its key"),
        "cannot begin the study 'icu': a key is malformed; ask each worker for its key",
    ),
    ("SumError", "false_statement"): (
        (3, "bob", "its signature is wrong"),
        "cannot sum round 3: the answer of 'bob' is not valid (its signature is wrong); ask its owner to update it, or "
        "leave it out",
    ),
    ("SumError", "lost_seed"): (
        (3, "bob"),
        "cannot sum round 3: the seed of 'bob' cannot be rebuilt from its shares, so it, or a worker that gave a "
        "share, did not follow the protocol; repeat it as a new round without that worker",
    ),
    ("SumError", "evidence"): (
        ("study.syft", "line 2 is malformed"),
        "cannot verify study.syft: line 2 is malformed; ask for the file again",
    ),
    ("SumRefusedError", "because"): (
        ("bob", "its owner has no rule", "ask the owner"),
        "cannot take part in a sum as worker 'bob': its owner has no rule; ask the owner",
    ),
    ("SumRuleError", "condition"): (
        ("aggregates", "'user' is missing"),
        "cannot use the rule 'aggregates' for sums: 'user' is missing; correct it",
    ),
    ("SumRuleError", "taken"): (
        ("aggregates",),
        "cannot add the rule 'aggregates' for sums: there is one of this name; choose another name, or revoke it",
    ),
    ("SumRuleError", "unknown"): (
        ("aggregates", "bob"),
        "cannot find the rule 'aggregates' for sums of worker 'bob': there is none; list `worker.studies`",
    ),
    ("SumRuleError", "ledger"): (
        ("bob",),
        "cannot use rules for sums on worker 'bob': it has no ledger file, and could repeat a round after a restart; "
        'give it one: `ledger = "ledger.jsonl"` in its configuration, or `ledger=Ledger(id, path)`',
    ),
    ("ApprovalError", "condition"): (
        ("study", "'user' is missing"),
        "cannot use the rule 'study': 'user' is missing; see `[rules.NAME]` in `syft-core worker --example`",
    ),
    ("ApprovalError", "unknown"): (
        ("study", "bob", "did you mean 'a-study'?"),
        "cannot find the rule 'study': worker 'bob' has none of that name; did you mean 'a-study'?",
    ),
    ("ApprovalError", "taken"): (
        ("study",),
        "cannot add the rule 'study': there is one of that name; choose another name, or revoke that one",
    ),
    ("ApprovalError", "contradicts"): (
        ("study", "other"),
        "cannot add the rule 'study': 'other' is for the same user, form and data, so it would not be "
        "clear which limits apply; revoke 'other' first",
    ),
    ("ApprovalError", "matches_nothing"): (
        ("study", "2020-01-01 is in the past"),
        "cannot add the rule 'study': it could never be used, because 2020-01-01 is in the past; correct it",
    ),
    ("ApprovalError", "revoked"): (
        ("study",),
        "cannot revoke the rule 'study': it was revoked already; nothing is left to do",
    ),
    ("StorageError", "request"): (
        ("request 3", "bob", "No space left on device"),
        "cannot keep request 3 on worker 'bob': it cannot be written to disk (No space left on device); nothing has "
        "changed; ask its owner to repair the disk, then try again",
    ),
    ("ReleaseError", "unknown"): (
        (9, "bob"),
        "cannot find request 9: worker 'bob' has no such request for you to see; list them with "
        "`worker.requests()` or, as the owner, with the command 'syft-core requests list'",
    ),
    ("ReleaseError", "untagged"): (
        ("9", "bob"),
        "cannot make a rule from request 9 to worker 'bob': it is not known which tagged data of the "
        "worker is in it; name the tags, e.g. with `--computed-from`",
    ),
    ("ReleaseError", "terms"): (
        ("bob", "it does not say how often results leave"),
        "cannot ask worker 'bob' for a study: it does not say how often results leave; correct it",
    ),
    ("ReleaseError", "being_fetched"): (
        (3, "bob"),
        "cannot take back the approval of request 3 of worker 'bob': it is being fetched; deny the next request",
    ),
    ("ReleaseError", "decision"): (
        ("maybe", "approve, deny, withdraw"),
        "cannot make the decision 'maybe': it is not one of approve, deny, withdraw; choose one of them",
    ),
    ("ReleaseError", "not_owner"): (
        ("eve", "bob"),
        "cannot decide on worker 'bob' as 'eve': only its owner may; connect with the token of an administrator",
    ),
    ("ReleaseError", "decided"): (
        (3, "bob", "denied"),
        "cannot decide on request 3 of worker 'bob': it was denied already; wait for a new request",
    ),
    ("ReleaseError", "differs"): (
        (3, "bob"),
        "cannot decide on request 3 of worker 'bob': it is not what was reviewed, because the digest differs; review "
        "it again",
    ),
    ("ReleaseError", "nothing"): (
        ("bob",),
        "cannot ask worker 'bob' for a release: the request names no object; name at least one",
    ),
    ("ReleaseError", "too_many"): (
        ("eve", "bob", 64),
        "cannot ask worker 'bob' for another release as 'eve': 64 requests are waiting for its owner; wait until some "
        "are decided",
    ),
    ("ReleaseError", "on_behalf"): (
        ("alice", "bob"),
        "cannot ask worker 'bob' for a release as 'alice': a release is for the peer who asks; let that peer ask",
    ),
    ("ReleaseError", "elsewhere"): (
        (7, "bob"),
        "cannot ask worker 'bob' to release object 7: its data is on another worker; ask that worker",
    ),
    ("SendNotPermittedError", "by"): (
        ("eve", ["ann", "al"]),
        "cannot send a private tensor as 'eve': its owner allows al, ann; send it as one of them: "
        "`sy.local_worker.user = 'al'`",
    ),
    ("LedgerError", "unwritable"): (
        ("bob", "No space left on device"),
        "cannot let anything leave worker 'bob': its ledger cannot be written (No space left on device); "
        "ask its owner to repair it, then try again",
    ),
    ("LedgerError", "unusable"): (
        ("bob.ledger", "Is a directory"),
        "cannot open the ledger bob.ledger: Is a directory; check the path, its permissions and who else uses it",
    ),
    ("LedgerError", "broken"): (
        ("bob.ledger", 7),
        "cannot verify line 7 of bob.ledger: its hash is wrong, so it was changed, or lines before it were inserted or "
        "removed; keep the file as evidence, and start a new one",
    ),
    ("LedgerError", "cut"): (
        ("bob.ledger", "ab12"),
        "cannot find the hash ab12 in bob.ledger: the file was truncated or replaced since the hash was noted; "
        "keep the file as evidence, and look for a copy",
    ),
    ("LedgerError", "later"): (
        ("ledger", 2),
        "cannot read ledger: it has format 2, of a later release of syft-core; install that one, or use a backup from "
        "before the upgrade",
    ),
    ("LedgerError", "incomplete"): (
        ("bob.ledger", 7),
        "cannot verify line 7 of bob.ledger: it is incomplete, because of a crash or a change; "
        "start the worker again, which sets the line aside",
    ),
    ("StorageError", "unwritable"): (
        (7, "bob", "No space left on device"),
        "cannot store object 7 on worker 'bob': it cannot be written to disk (No space left on device); "
        "ask its owner to repair the disk, then try again",
    ),
    ("TagNotPermittedError", "to"): (
        ("eve", 7, "bob", "it is somebody else's"),
        "cannot tag or describe object 7 on worker 'bob' as 'eve': it is somebody else's; tag a copy instead, "
        'e.g. `p = p.copy().tag("#mine")`',
    ),
    ("TagNotPermittedError", "reserved"): (
        ("eve", 7, "bob", "#mnist"),
        "cannot tag object 7 on worker 'bob' as 'eve': '#mnist' is reserved for data that its owner published; "
        "choose another tag",
    ),
    ("WriteNotPermittedError", "to"): (
        ("eve", 7, "bob", "it is published"),
        "cannot change object 7 on worker 'bob' as 'eve': it is published; change a copy instead, e.g. `p = p.copy()`",
    ),
    ("PolicyError", "unknown"): (
        ("all", ["nothing", "only_published"]),
        "cannot use the policy 'all': there is no such policy; use one of nothing, only_published, or a function",
    ),
    ("PolicyError", "signature"): (
        (5,),
        "cannot use 5 as a policy: it must take (verb, stored, peer, value); return None to allow, or the reason for a "
        "refusal",
    ),
    ("TooManyHopsError", "at"): (
        ("bob",),
        "cannot answer on worker 'bob': the request was forwarded too often; use a pointer to the worker that "
        "holds the data",
    ),
    ("TooManyHopsError", "itself"): (
        ("bob",),
        "cannot send a pointer to 'bob': its data is there already; use the pointer, or copy it: `p.copy()`",
    ),
    ("OperationFailedError", "on_the_way_to"): (
        (7, "bob", ["toy.log that failed with ValueError", "toy.index that failed with IndexError"]),
        "cannot get object 7 from worker 'bob': it was computed with toy.index that failed with IndexError, "
        "toy.log that failed with ValueError; compute it again from input for which the operation works",
    ),
    ("OperationNotAllowedError", "off"): (
        ("toy.crash",),
        "cannot run 'toy.crash' on a worker: it is not memory-safe for all arguments; fetch the tensor first: `p = "
        "p.get()`",
    ),
    ("ValueRefusedError", "unreviewed"): (
        ("toy.nonzero", "bob"),
        "cannot run 'toy.nonzero' on a pointer: it has not been reviewed for private data (docs/security.md), and its "
        "operands have private values on 'bob'; ask the owner for them: `p.request(\"why\")`",
    ),
    ("ValueRefusedError", "undecided"): (
        ("toy.index", "bob", "p + p"),
        "cannot run 'toy.index' on a pointer: its kind of result depends on private values on 'bob'; use `p + p`, or "
        'ask the owner for them: `p.request("why")`',
    ),
    ("ValueRefusedError", "of"): (
        ("toy.item", "bob"),
        "cannot run 'toy.item' on a pointer: it would implicitly reveal a value from 'bob'; fetch it first: "
        '`p.get()`, or a copy: `p.copy().get()`, or allow it: `with sy.revealing("why"):`',
    ),
    ("ValueRefusedError", "without_reason"): (
        (),
        "cannot reveal values: the ledger of each worker records a reason, and none was given; name one, e.g. "
        '`with sy.revealing("line search"):`',
    ),
    ("ValueRefusedError", "only_local"): (
        ("toy.apply", "bob"),
        "cannot run 'toy.apply' on a pointer to 'bob': it only works in the process that holds the data; fetch "
        "the tensor first: `p = p.get()`",
    ),
    ("ValueRefusedError", "form"): (
        ("toy.nonzero", "bob"),
        "cannot run 'toy.nonzero' on a pointer: the shape of its result would reveal private values on 'bob'; ask "
        'the owner for them: `p.request("why")`',
    ),
    ("ValueRefusedError", "foreign"): (
        ("numpy.sum", "bob", "use `toy.sum(p)`, or ", "p.get()"),
        "cannot run 'numpy.sum' on a pointer: it would implicitly reveal a value from 'bob'; use `toy.sum(p)`, or "
        "fetch it first: `p = p.get()`",
    ),
    ("ValueRefusedError", "beyond"): (
        ("toy.as_strided", "bob"),
        "cannot run 'toy.as_strided' on a pointer: the tensor on 'bob' is part of a larger one, which the "
        "operation could read; run it on a copy: `p = p.clone()`",
    ),
    ("ValueRefusedError", "failed"): (
        ("toy.index", "bob", "IndexError"),
        "cannot run 'toy.index' on a pointer: it raised IndexError on 'bob', and the text is withheld because it "
        "may quote private values; check shapes, dtypes and ranges",
    ),
    ("NotCollocatedError", "change"): (
        ("toy.add_", "bob"),
        "cannot run 'toy.add_': it would implicitly reveal a value from 'bob' by writing it into a local tensor; "
        "fetch it first: `p = p.get()`",
    ),
    ("SendNotPermittedError", "claimed"): (
        ("ann", "me"),
        "cannot send as 'ann': the sender is 'me', and a claimed user name is not authentication; "
        "leave `user` out, or set the `user` of "
        "the local worker",
    ),
    ("InvalidTensorForRemoteGetError", "on"): (
        (7, "bob"),
        "cannot get what object 7 on worker 'bob' points to: it is not a pointer, the data is there; fetch it "
        "with `p.get()`",
    ),
    ("NotCollocatedError", "foreign"): (
        ("toy.add", "bob", "ndarray", "toy"),
        "cannot run 'toy.add': it mixes a toy tensor on 'bob' with a local ndarray; convert and send it: `y = "
        "toy.asarray(y).send('bob')`",
    ),
    ("WrapperLeakError", "saving"): (
        ("bob",),
        "cannot save or pickle a pointer: its data is on 'bob'; fetch it first: `p = p.get()`, or `model.get()` "
        "for a model",
    ),
    ("ObjectNotFoundError", "on"): (
        (7, "bob"),
        "cannot find object 7 on worker 'bob': it was never stored there, or was deleted; keep a pointer to every"
        " object that you still need",
    ),
    ("MixedLayersError", "parties"): (
        ("bob, alice", "bob, dave"),
        "cannot compute on values shared among bob, alice and among bob, dave: the parties, their order or the "
        "crypto_provider differ; share both among the same workers",
    ),
    ("MixedLayersError", "rings"): (
        ("int32", "int64"),
        "cannot compute on shared int32 and int64 numbers: a mask of one ring does not hide a number of the other; "
        "share both with the same dtype, or encode both with the same `field`",
    ),
    ("ProtocolError", "mixed_rings"): (
        ("spdz_mul",),
        "cannot run 'spdz_mul' on shares of different dtypes: a mask of one ring does not hide a number of the other; "
        "share all values with the same dtype",
    ),
    ("OperationNotAllowedError", "no_kernels"): (
        ("toy",),
        "cannot compute on shares with toy: its backend has no integer kernels; set `kernels` of its "
        "FrameworkAttributes",
    ),
    ("PrecisionError", "fractional_power"): (
        (),
        "cannot raise a fixed-precision number to this power: the exponent must be a multiple of 1/2; for "
        "positive numbers, use `(y * x.log()).exp()`",
    ),
    ("PrecisionError", "differs"): (
        ("aten.mul.Tensor", (0, 1), 7.04e13, 1.07e9),
        "cannot trust 'aten.mul.Tensor': element (0, 1) of its result is out of range, or not the one that floats "
        "give; at this precision, numbers must be smaller than 7.04e+13, and products smaller than 1.07e+09, in size; "
        "scale the data, normalize between layers, or use fewer fractional digits",
    ),
    ("OperationNotAllowedError", "in_graph"): (
        ("share",),
        "cannot share a result that requires a gradient: the graph would end here, and the tensors before it get no "
        "gradient; write `x.detach()` if this is what you want, or encode and share the parameters instead",
    ),
    ("PrecisionError", "not_fixed"): (
        (),
        "cannot convert to floats: the tensor has no fixed precision; use it as it is, or call `x.fix_precision()`",
    ),
    ("PrecisionError", "not_plain"): (
        (),
        "cannot encode this tensor: it is a chain already; call `get()` or `float_precision()` first, or encode "
        "before the tensor is sent or shared",
    ),
    ("PrecisionError", "out_of_range"): (
        (9200000000000.0,),
        "cannot encode a number: it is not finite, or not smaller than 9.2e+12 in size, and does not fit into the "
        "ring; scale the data, or use fewer fractional digits; to mask numbers, add -inf, or write it with "
        "`where` or `masked_fill`",
    ),
    ("PrecisionError", "not_a_precision"): (
        (2.5, -1),
        "cannot use base=2.5, precision_fractional=-1: expected integers, the base from 2 on and the precision from 0 "
        "on; write `x.fix_precision(base=2, precision_fractional=16)`",
    ),
    ("PrecisionError", "digits"): (
        ("bitwise_xor",),
        "cannot run 'bitwise_xor' on shared integers: their binary digits are secret; use it on results of "
        "comparisons, such as `x != 0`, or use `torch.logical_and` and the like",
    ),
    ("PrecisionError", "unknown_norm"): (
        (3,),
        "cannot compute the norm 3: there is no protocol for it; use 1, 2, inf or -inf, or compute it from powers",
    ),
    ("ProtocolError", "not_a_ring"): (
        ("uint8",),
        "cannot share uint8 numbers: shares are integers of 64 or 32 bits; convert them first, e.g. `x.long()`",
    ),
    ("ProtocolError", "a_list"): (
        (),
        "cannot share: expected workers, got a list; unpack it: `x.share(*workers, crypto_provider=carol)`",
    ),
    ("ProtocolError", "not_a_list"): (
        (),
        "cannot encrypt: expected a list of workers; write `x.encrypt(workers=[bob, alice])`",
    ),
    ("PrecisionError", "still_shared"): (
        (),
        "cannot convert a shared number to a float: no worker knows it; fetch it first: `x.get().float_precision()`",
    ),
    ("PrecisionError", "unknown_field"): (
        ("short",),
        "cannot use the field 'short': there is none of this name; use 'long' (64 bits) or 'int' (32 bits)",
    ),
    ("PrecisionError", "another_ring"): (
        ("int", "long"),
        "cannot share with dtype='int': the numbers have the ring 'long'; leave it out, or name the ring before: "
        "`x.fix_precision(field='int')`",
    ),
    ("PrecisionError", "not_here"): (
        (),
        "cannot convert to floats: what the pointer points to is on its worker; fetch it first: "
        "`x.get().float_precision()`",
    ),
    ("PrecisionError", "unknown_method"): (
        ("sigmoid", "magic"),
        "cannot compute sigmoid with the method 'magic': there is none of this name; leave it out",
    ),
    ("ProtocolError", "malformed"): (
        ("bob",),
        "cannot continue the protocol: party 'bob' sent arrays of another form (malformed message); "
        "use the same release of syft-core at all workers",
    ),
    ("ProtocolError", "mixed_locations"): (
        (),
        "cannot share among workers of this process and others: they cannot wait for each other; use virtual "
        "workers only, or workers on the network only, the crypto_provider included",
    ),
    ("ProtocolError", "no_provider"): (
        (),
        "cannot compute this without a crypto_provider: products, divisions and comparisons need its random numbers; "
        "write `x.share(bob, alice, crypto_provider=carol)`",
    ),
    ("ProtocolError", "not_a_share"): (
        ("spdz_mul", "str"),
        "cannot run 'spdz_mul' on a str: expected a share, an integer tensor; share the value first: "
        "`x.fix_precision().share(bob, alice, crypto_provider=carol)`",
    ),
    ("ProtocolError", "not_an_integer"): (
        ("float32",),
        "cannot share float32 numbers: shares are integers; write `x.fix_precision().share(...)`",
    ),
    ("ProtocolError", "not_virtual"): (
        ("bob",),
        "cannot check results: worker 'bob' is not a virtual worker, and all shares would be read; develop with "
        "virtual workers, and leave `sy.checking()` out of programs for others",
    ),
    ("ProtocolError", "cannot_check_authenticated"): (
        (),
        "cannot check results of authenticated shares: nobody reads them without their keys; check the program with "
        'the default protocol, and `field="int"` for the same range',
    ),
    ("ProtocolError", "not_shared"): (
        (),
        "cannot do this: the tensor is not shared; write `x.share(bob, alice, crypto_provider=carol)` first",
    ),
    ("PartyFailedError", "by"): (
        ("bob",),
        "cannot finish the protocol: party 'bob' failed; see the error of that worker",
    ),
    ("ProtocolError", "too_many_masks"): (
        (2000, 3000, 4000),
        "cannot keep a mask of 2,000 bytes: masks of the client take 3,000 bytes here already, and the limit is "
        "4,000; use fewer or smaller weights at once",
    ),
    ("ProtocolError", "unknown_mask"): (
        (7,),
        "cannot multiply by a kept value: its mask 7 is unknown here; repeat the operation",
    ),
    ("ProtocolError", "unusable"): (
        ("bob", "it is too large"),
        "cannot finish the protocol: what party 'bob' sent was refused (it is too large); share again",
    ),
    ("ProtocolError", "checks_private"): (
        ("auth_mul",),
        "cannot run 'auth_mul' on private values: whether their tags are right would reveal something about them; ask "
        "their owner to allow you to read them, or share them without protocol='authenticated'",
    ),
    ("ProtocolError", "changed_operand"): (
        (),
        "cannot multiply by a kept value: another value was masked, or it has changed since; repeat the operation",
    ),
    ("ProtocolError", "channel_failed"): (
        (7,),
        "cannot start run 7: an earlier run failed, and the parties may have used different random numbers; open a "
        "new channel, which the next operation does",
    ),
    ("ProtocolError", "refused"): (
        ("bob", "cannot find channel 7"),
        "cannot finish the protocol: party 'bob' refused a message (cannot find channel 7); share again",
    ),
    ("ProtocolError", "too_many_bytes"): (
        (5000, 9000, 10_000),
        "cannot accept a deposit of 5,000 bytes: 9,000 bytes of the client wait here already, and the limit is "
        "10,000; share fewer values at once",
    ),
    ("ProtocolError", "same_worker_twice"): (
        (),
        "cannot share: a worker is given twice, or is the crypto_provider too, and would learn the values; use "
        "different workers",
    ),
    ("ProtocolError", "silent"): (
        ("bob", 30.0),
        "cannot finish the protocol: party 'bob' has sent nothing for 30 seconds; call the operation again",
    ),
    ("ProtocolError", "too_few_parties"): (
        (1,),
        "cannot share among 1 workers: at least two are needed; write `x.share(bob, alice, crypto_provider=carol)`",
    ),
    ("ProtocolError", "unknown_channel"): (
        (7,),
        "cannot find channel 7: it was not opened by this client, or the worker was restarted; share the values again",
    ),
    ("ProtocolError", "unknown_protocol"): (
        ("gmw",),
        "cannot share with the protocol 'gmw': it is not known; use 'fast', the default, 'snn' for SecureNN, or "
        "'authenticated' if parties may cheat",
    ),
    ("ProtocolError", "unreachable"): (
        ("bob", "refused"),
        "cannot finish the protocol: party 'bob' cannot be reached (refused); share the values again when it is back",
    ),
    ("ProtocolError", "foreign"): (
        ("bob",),
        "cannot continue the protocol: what came in the name of party 'bob' does not belong to this run; the client "
        "started another one there, somebody else sent it, or the party cheats: repeat the operation",
    ),
    ("ProtocolError", "untrusted"): (
        ("bob", "alice, carol"),
        "cannot compute on private shares of worker 'bob' together with alice, carol: its owner does not trust "
        "them; ask the owner to call `bob.trust(alice, carol)`",
    ),
    ("PrecisionError", "complex_number"): (
        (),
        "cannot encode complex numbers: fixed precision is for real ones; encode the parts of each",
    ),
    ("PrecisionError", "no_fractions"): (
        ("exp",),
        "cannot compute 'exp' of shared integers: its results are fractions; encode the numbers first: "
        "`x.fix_precision().share(...)`",
    ),
    ("PrecisionError", "division_by_zero"): (
        (),
        "cannot divide by 0: fixed-precision numbers have no infinity; add a small number to the divisor",
    ),
    ("PrecisionError", "not_real"): (
        ("torch.int32",),
        "cannot convert fixed-precision numbers to torch.int32: only fetched numbers can be rounded; fetch and "
        "decode them first: `x.get().float_precision()`",
    ),
    ("PrecisionError", "not_shared_yet"): (
        (),
        "cannot compute on fixed-precision numbers at one worker: computing needs shares; share them first: "
        "`x.share(bob, alice, crypto_provider=carol)`, or compute before `fix_precision()`",
    ),
    ("PrecisionError", "reveals"): (
        (),
        "cannot read the values of shared or encoded numbers (item, bool, if, tolist, numpy, save): they are not here; "
        "fetch shared ones with `x.get()`, and decode fixed precision with `x.float_precision()`",
    ),
    ("PrecisionError", "shared_into_public"): (
        (),
        "cannot write shared numbers into a tensor that is not shared: it would reveal them; share the tensor "
        "first, or write `x = x + y` instead of `x += y`",
    ),
    ("ProtocolError", "data_elsewhere"): (
        ("bob",),
        "cannot share data of worker 'bob' among other workers: it would have to leave its worker; share it with "
        "'bob' as one of the workers",
    ),
    ("ProtocolError", "secret_index"): (
        (),
        "cannot index with shared or encoded numbers: the choice would reveal them; multiply by a mask, e.g. "
        "`torch.where(x > 0, x, 0)`, or index with plain integers",
    ),
    ("ProtocolError", "shared_already"): (
        (),
        "cannot share this tensor: it is shared already; call `refresh()` for new shares, or `get()` it first",
    ),
    ("SendNotPermittedError", "stays"): (
        ("send",),
        "cannot send a shared value: its shares stay with their parties; fetch it first: `x.get()`, or compute on "
        "it where it is",
    ),
    ("CheatingError", "disagree"): (
        ("'bob', 'alice'",),
        "cannot get the value: the workers 'bob', 'alice' returned different ones, so at least one of them cheats;"
        " share the values again, among other workers",
    ),
    ("ProtocolError", "beyond_authentication"): (
        (2147483648,),
        "cannot use integers of 2,147,483,648 or more in size with authenticated shares: values have 32 bits, and "
        "products that are divided by a scale must be smaller than 2^30; scale the data, or use fewer fractional "
        "digits",
    ),
    ("ProtocolError", "not_a_word"): (
        ("float32",),
        "cannot compute on authenticated shares with float32 numbers: expected int64; convert integers, and share "
        "real numbers with fixed precision: `x.fix_precision(base=2, precision_fractional=8).share(...)`",
    ),
    ("ProtocolError", "not_authenticated"): (
        (),
        "cannot compute this on authenticated shares: only sums, products, and operations that move elements are "
        "possible; share the values without protocol='authenticated' if no party cheats",
    ),
    ("ProtocolError", "only_local"): (
        (),
        "cannot share what a pointer points to with protocol='authenticated': only values of this process can be; "
        "leave the protocol out, or let the worker input it with `auth_input` of syft_mpc.authenticated",
    ),
    ("ProtocolError", "too_many_runs"): (
        (8,),
        "cannot start a run: 8 runs of this channel wait for the other parties; start those there first",
    ),
    ("ProtocolError", "too_many_prepared"): (
        (262_000, 262_144),
        "cannot prepare more correlations: 262,000 are prepared and not used, and the limit is 262,144; use them first",
    ),
    ("ProtocolError", "reopened"): (
        (),
        "cannot use these authenticated shares: since they were created, a party has cheated or a worker has lost its "
        "keys, and the parties have new ones; share the values again",
    ),
}
CONSTRUCTED = {
    "RemoteObjectFoundError": (
        exceptions.RemoteObjectFoundError("a pointer"),
        "cannot unwrap a pointer: its object lives on another worker; send the command there",
    ),
    "ResponseSignatureError": (
        exceptions.ResponseSignatureError([1, 2]),
        "cannot register a response: it has more tensors than ids were given; give one id for each tensor",
    ),
}


def writers() -> set[tuple[str, str]]:
    return {
        (name, method)
        for name, cls in CLASSES.items()
        for method, function in vars(cls).items()
        if isinstance(function, (classmethod, exceptions.Text))
    }


def calls_of_texts() -> list[tuple[str, exceptions.Text, ast.Call]]:
    """Return every call of a text in the packages, with its place."""
    found = []
    for package in PACKAGES:
        for path in (Path(exceptions.__file__).parents[1] / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    owner = node.func.value
                    cls = CLASSES.get(owner.id) if isinstance(owner, ast.Name) else None
                    text = vars(cls).get(node.func.attr) if cls is not None else None
                    if isinstance(text, exceptions.Text):
                        found.append((f"{path.name}:{node.lineno}", text, node))
    return found


def drawn_tree() -> dict[str, str]:
    """Map each class in the docstring's drawing to the class it hangs from."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (exceptions.__doc__ or "").splitlines():
        drawn = re.match(r"^    ([│ ]*)(?:[├└]── )?(\w+Error)\b", line)
        if drawn:
            depth = 0 if line.startswith("    SyftError") else len(drawn[1]) // 4 + 1
            path[depth:] = [drawn[2]]
            parents[drawn[2]] = path[depth - 1] if depth else ""
    return parents


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_error_is_a_syft_error(name: str) -> None:
    assert issubclass(CLASSES[name], SyftError)


def test_the_drawn_tree_is_the_real_one() -> None:
    real = {name: "" if cls is SyftError else cls.__bases__[0].__name__ for name, cls in CLASSES.items()}

    assert drawn_tree() == real


def test_the_drawing_names_the_builtin_errors_that_a_class_also_is() -> None:
    drawn = {
        name: set(re.findall(r"\w+Error", also))
        for name, also in re.findall(r"(\w+Error) +\(also an? ([^)]*)\)", exceptions.__doc__ or "")
    }
    real = {
        name: {base.__name__ for base in cls.__bases__[1:]} for name, cls in CLASSES.items() if len(cls.__bases__) > 1
    }

    assert drawn == real


def test_every_writer_of_a_message_has_its_text_here() -> None:
    assert writers() == set(TEXTS)


def test_every_call_fills_in_all_fields_of_its_text() -> None:
    """Their types are not checked, so this is."""
    calls = calls_of_texts()

    assert len(calls) > 30
    for place, text, call in calls:
        given = {*text.fields[: len(call.args)], *(keyword.arg for keyword in call.keywords)}
        assert len(call.args) + len(call.keywords) == len(given), place
        assert given | text.defaults.keys() == set(text.fields), place


@pytest.mark.parametrize("values", [(), ("one",), ("one", "two", "three", "four")])
def test_a_text_refuses_other_numbers_of_values(values: tuple[str, ...]) -> None:
    with pytest.raises((KeyError, ValueError)):
        exceptions.NotCollocatedError.between(*values)


@pytest.mark.parametrize(("name", "method"), sorted(TEXTS))
def test_the_text_is_exactly(name: str, method: str) -> None:
    arguments, text = TEXTS[name, method]

    error = getattr(CLASSES[name], method)(*arguments)

    assert type(error) is CLASSES[name]
    assert str(error) == text


@pytest.mark.parametrize("name", sorted(CONSTRUCTED))
def test_the_text_of_an_error_that_carries_something_is_exactly(name: str) -> None:
    error, text = CONSTRUCTED[name]

    assert str(error) == text


def test_every_text_says_what_cannot_be_done_why_and_what_to_do() -> None:
    texts = [text for _, text in (*TEXTS.values(), *CONSTRUCTED.values())]

    for text in texts:
        assert re.fullmatch(r"cannot .+?: .+; .+", text), text
        assert text[-1] not in ".!"


def test_hints_are_left_out_when_nothing_is_near() -> None:
    lacking = exceptions.NotRegisteredError.of("table", "'key'", [], "add it")
    refused = exceptions.OperationNotAllowedError.not_in_table("toy", "toy.x", [])

    assert str(lacking) == "cannot find 'key' in 'table': it is not registered; add it"
    assert "it is not in the toy op table; allow it" in str(refused)


def test_something_without_a_name_is_called_by_its_type() -> None:
    error = exceptions.NotTheFrameworkError.received("ToyHook", "toy", 3)

    assert str(error).startswith("cannot hook 'int': ")


def test_the_pointer_and_the_ids_travel_with_their_errors() -> None:
    pointer = object()

    assert exceptions.RemoteObjectFoundError(pointer).pointer is pointer
    assert exceptions.ResponseSignatureError(iter([1, 2])).ids_generated == [1, 2]
    assert exceptions.ResponseSignatureError().ids_generated == []


def test_the_command_that_installs_a_package_names_a_version_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["pluggy>=1.5", 'lz4>=4.3; extra == "lz4"', 'syft-core[lz4]; extra == "all"', "PyArrow (>=15)"]
    monkeypatch.setattr(exceptions, "requires", lambda _name: needed)

    assert exceptions.how_to_install("lz4") == "pip install 'lz4>=4.3'"
    assert exceptions.how_to_install("pyarrow") == "pip install 'PyArrow (>=15)'"
    assert exceptions.how_to_install("other") == "pip install other"


def test_a_package_is_advised_by_its_name_where_this_one_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(exceptions, "requires", find)

    assert exceptions.how_to_install("ray") == "pip install ray"


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("NotRegisteredError", LookupError),
        ("DependencyError", ImportError),
        ("NotTheFrameworkError", TypeError),
        ("OperationNotAllowedError", TypeError),
        ("OperationNotAllowedError", RuntimeError),
        ("MixedLayersError", TypeError),
        ("WrapperLeakError", RuntimeError),
        ("PlanMismatchError", AssertionError),
        ("DomainError", ValueError),
        ("IdNotUniqueError", ValueError),
        ("ObjectNotFoundError", LookupError),
        ("SerdeError", ValueError),
    ],
)
def test_what_python_programs_expect_to_catch_they_can_catch(name: str, builtin: type) -> None:
    assert issubclass(CLASSES[name], builtin)
