"""The errors of encrypted computation."""

from __future__ import annotations

from syft_core.exceptions import SyftError, Text, WorkerError


class PrecisionError(SyftError, ValueError):
    """A number cannot be represented, or an operation not computed, with fixed precision."""

    out_of_range = Text(
        "cannot encode a number: it is not finite, or not smaller than {limit:.3g} in size, and does not fit into the "
        "ring; scale the data, or use fewer fractional digits; to mask numbers, add -inf, or write it with `where` or "
        "`masked_fill`"
    )
    complex_number = Text("cannot encode complex numbers: fixed precision is for real ones; encode the parts of each")
    not_shared_yet = Text(
        "cannot compute on fixed-precision numbers at one worker: computing needs shares; share them first: "
        "`x.share(bob, alice, crypto_provider=carol)`, or compute before `fix_precision()`"
    )
    not_real = Text(
        "cannot convert fixed-precision numbers to {dtype}: only fetched numbers can be rounded; fetch and decode them "
        "first: `x.get().float_precision()`"
    )
    reveals = Text(
        "cannot read the values of shared or encoded numbers (item, bool, if, tolist, numpy, save): they are not here; "
        "fetch shared ones with `x.get()`, and decode fixed precision with `x.float_precision()`"
    )
    no_fractions = Text(
        "cannot compute {function!r} of shared integers: its results are fractions; encode the numbers first: "
        "`x.fix_precision().share(...)`"
    )
    division_by_zero = Text(
        "cannot divide by 0: fixed-precision numbers have no infinity; add a small number to the divisor"
    )
    shared_into_public = Text(
        "cannot write shared numbers into a tensor that is not shared: it would reveal them; share the tensor first, "
        "or write `x = x + y` instead of `x += y`"
    )
    unknown_field = Text(
        "cannot use the field {field!r}: there is none of this name; use 'long' (64 bits) or 'int' (32 bits)"
    )
    another_ring = Text(
        "cannot share with dtype={ring!r}: the numbers have the ring {own!r}; leave it out, or name the ring before: "
        "`x.fix_precision(field={ring!r})`",
        order="ring own",
    )
    not_here = Text(
        "cannot convert to floats: what the pointer points to is on its worker; fetch it first: "
        "`x.get().float_precision()`"
    )
    not_plain = Text(
        "cannot encode this tensor: it is a chain already; call `get()` or `float_precision()` first, or encode before "
        "the tensor is sent or shared"
    )
    differs = Text(
        "cannot trust {operation!r}: element {position} of its result is out of range, or not the one that floats "
        "give; at this precision, numbers must be smaller than {limit:.3g}, and products smaller than {products:.3g}, "
        "in size; scale the data, normalize between layers, or use fewer fractional digits"
    )
    not_fixed = Text(
        "cannot convert to floats: the tensor has no fixed precision; use it as it is, or call `x.fix_precision()`"
    )
    still_shared = Text(
        "cannot convert a shared number to a float: no worker knows it; fetch it first: `x.get().float_precision()`"
    )
    unknown_method = Text(
        "cannot compute {function} with the method {method!r}: there is none of this name; leave it out",
        order="function method",
    )
    not_a_precision = Text(
        "cannot use base={base!r}, precision_fractional={precision!r}: expected integers, the base from 2 on and the "
        "precision from 0 on; write `x.fix_precision(base=2, precision_fractional=16)`",
        order="base precision",
    )
    digits = Text(
        "cannot run {operation!r} on shared integers: their binary digits are secret; use it on results of "
        "comparisons, such as `x != 0`, or use `torch.logical_and` and the like"
    )
    unknown_norm = Text(
        "cannot compute the norm {ord}: there is no protocol for it; use 1, 2, inf or -inf, or compute it from powers"
    )
    fractional_power = Text(
        "cannot raise a fixed-precision number to this power: the exponent must be a multiple of 1/2; for positive "
        "numbers, use `(y * x.log()).exp()`"
    )


class ProtocolError(WorkerError):
    """A protocol on shared values cannot run, or a party did not follow it."""

    not_virtual = Text(
        "cannot check results: worker {id!r} is not a virtual worker, and all shares would be read; develop with "
        "virtual workers, and leave `sy.checking()` out of programs for others"
    )
    cannot_check_authenticated = Text(
        "cannot check results of authenticated shares: nobody reads them without their keys; check the program with "
        'the default protocol, and `field="int"` for the same range'
    )
    needs_parties = Text(
        "cannot run {name!r} with {count} parties: it needs {needed}; share the values among {needed} workers",
        order="name needed count",
    )
    mixed_locations = Text(
        "cannot share among workers of this process and others: they cannot wait for each other; "
        "use virtual workers only, or workers on the network only, the crypto_provider included"
    )
    too_few_parties = Text(
        "cannot share among {count} workers: at least two are needed; "
        "write `x.share(bob, alice, crypto_provider=carol)`"
    )
    a_list = Text("cannot share: expected workers, got a list; unpack it: `x.share(*workers, crypto_provider=carol)`")
    not_a_list = Text("cannot encrypt: expected a list of workers; write `x.encrypt(workers=[bob, alice])`")
    same_worker_twice = Text(
        "cannot share: a worker is given twice, or is the crypto_provider too, and would learn the values; "
        "use different workers"
    )
    no_provider = Text(
        "cannot compute this without a crypto_provider: products, divisions and comparisons need its random numbers; "
        "write `x.share(bob, alice, crypto_provider=carol)`"
    )
    not_shared = Text(
        "cannot do this: the tensor is not shared; write `x.share(bob, alice, crypto_provider=carol)` first"
    )
    data_elsewhere = Text(
        "cannot share data of worker {home!r} among other workers: it would have to leave its worker; share it with "
        "{home!r} as one of the workers"
    )
    shared_already = Text(
        "cannot share this tensor: it is shared already; call `refresh()` for new shares, or `get()` it first"
    )
    secret_index = Text(
        "cannot index with shared or encoded numbers: the choice would reveal them; multiply by a mask, e.g. "
        "`torch.where(x > 0, x, 0)`, or index with plain integers"
    )
    not_an_integer = Text("cannot share {dtype} numbers: shares are integers; write `x.fix_precision().share(...)`")
    not_a_ring = Text(
        "cannot share {dtype} numbers: shares are integers of 64 or 32 bits; convert them first, e.g. `x.long()`"
    )
    unknown_protocol = Text(
        "cannot share with the protocol {protocol!r}: it is not known; use 'fast', the default, 'snn' for SecureNN, or "
        "'authenticated' if parties may cheat"
    )
    not_a_word = Text(
        "cannot compute on authenticated shares with {dtype} numbers: expected int64; convert integers, and share real "
        "numbers with fixed precision: `x.fix_precision(base=2, precision_fractional=8).share(...)`"
    )
    beyond_authentication = Text(
        "cannot use integers of {limit:,} or more in size with authenticated shares: values have 32 bits, and products "
        "that are divided by a scale must be smaller than 2^30; scale the data, or use fewer fractional digits"
    )
    only_local = Text(
        "cannot share what a pointer points to with protocol='authenticated': only values of this process can be; "
        "leave the protocol out, or let the worker input it with `auth_input` of syft_mpc.authenticated"
    )
    not_authenticated = Text(
        "cannot compute this on authenticated shares: only sums, products, and operations that move elements are "
        "possible; share the values without protocol='authenticated' if no party cheats"
    )
    reopened = Text(
        "cannot use these authenticated shares: since they were created, a party has cheated or a worker has lost its "
        "keys, and the parties have new ones; share the values again"
    )
    malformed = Text(
        "cannot continue the protocol: party {party!r} sent arrays of another form (malformed message); "
        "use the same release of syft-core at all workers"
    )
    foreign = Text(
        "cannot continue the protocol: what came in the name of party {party!r} does not belong to this run; the "
        "client started another one there, somebody else sent it, or the party cheats: repeat the operation"
    )
    unusable = Text("cannot finish the protocol: what party {party!r} sent was refused ({error}); share again")
    unreachable = Text(
        "cannot finish the protocol: party {party!r} cannot be reached ({error}); "
        "share the values again when it is back",
    )
    refused = Text("cannot finish the protocol: party {party!r} refused a message ({error}); share again")
    silent = Text(
        "cannot finish the protocol: party {party!r} has sent nothing for {seconds:.0f} seconds; "
        "call the operation again"
    )
    too_many_masks = Text(
        "cannot keep a mask of {size:,} bytes: masks of the client take {kept:,} bytes here already, and the limit is "
        "{limit:,}; use fewer or smaller weights at once"
    )
    unknown_mask = Text("cannot multiply by a kept value: its mask {number!r} is unknown here; repeat the operation")
    changed_operand = Text(
        "cannot multiply by a kept value: another value was masked, or it has changed since; repeat the operation"
    )
    checks_private = Text(
        "cannot run {name!r} on private values: whether their tags are right would reveal something about them; ask "
        "their owner to allow you to read them, or share them without protocol='authenticated'"
    )
    channel_failed = Text(
        "cannot start run {number}: an earlier run failed, and the parties may have used different random numbers; "
        "open a new channel, which the next operation does"
    )
    too_many_runs = Text(
        "cannot start a run: {count} runs of this channel wait for the other parties; start those there first"
    )
    too_many_prepared = Text(
        "cannot prepare more correlations: {count:,} are prepared and not used, and the limit is {limit:,}; "
        "use them first",
        order="count limit",
    )
    too_many_bytes = Text(
        "cannot accept a deposit of {size:,} bytes: {held:,} bytes of the client wait here already, and the limit is "
        "{limit:,}; share fewer values at once"
    )
    unknown_channel = Text(
        "cannot find channel {id!r}: it was not opened by this client, or the worker was restarted; "
        "share the values again"
    )
    untrusted = Text(
        "cannot compute on private shares of worker {worker!r} together with {others}: its owner does not trust them; "
        "ask the owner to call `{worker}.trust({others})`",
        order="worker others",
    )
    mixed_rings = Text(
        "cannot run {name!r} on shares of different dtypes: a mask of one ring does not hide a number of the other; "
        "share all values with the same dtype"
    )
    not_a_share = Text(
        "cannot run {name!r} on a {kind}: expected a share, an integer tensor; share the value first: "
        "`x.fix_precision().share(bob, alice, crypto_provider=carol)`"
    )


class CheatingError(ProtocolError):
    """A party sent values that fail authentication."""

    by = Text(
        "cannot finish the protocol: worker {worker!r} sent values that fail authentication, and there is no result; "
        "it cheats, or the client used shares that do not belong together, or the provider dealt wrong ones: "
        "share the values again, without this worker"
    )
    disagree = Text(
        "cannot get the value: the workers {workers} returned different ones, so at least one of them cheats; "
        "share the values again, among other workers"
    )


class PartyFailedError(ProtocolError):
    """Another party of a protocol failed; its own error says why."""

    by = Text("cannot finish the protocol: party {party!r} failed; see the error of that worker")
