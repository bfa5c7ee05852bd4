"""The errors of federated data and training."""

from __future__ import annotations

from syft_core.exceptions import SyftError, Text


class FederatedError(SyftError, ValueError):
    """Federated data or training cannot be used as it was given."""

    # --- data

    not_a_dataset = Text(
        "cannot make a FederatedDataset of a {kind}: it consists of datasets on workers; send them first, e.g. "
        "`BaseDataset(data, targets).send(bob)`"
    )
    local_dataset = Text(
        "cannot make a FederatedDataset: a dataset of {count} samples is not on a worker; send it first, e.g. "
        "`dataset.send(bob)`"
    )
    one_worker = Text("cannot federate a dataset over a {kind}: pass a list of workers, e.g. `[bob, alice]`")
    repeated_worker = Text("cannot federate a dataset: a worker is given twice; give each worker once")
    few_samples = Text(
        "cannot federate a dataset of {samples} samples over {workers} workers: each must get at least one; give fewer "
        "workers"
    )
    few_queries = Text(
        "cannot find a dataset with {count} searches: it needs inputs and targets; write e.g. "
        '`find("#data", "#labels", workers=[bob])`'
    )
    not_found = Text(
        "cannot find a dataset on worker {worker!r}: the searches have {counts} results; each part needs one, or the "
        "same number for all; use tags that only these objects have"
    )
    table_query = Text(
        "cannot find tables: a label, one search and a list of other columns belong together; write e.g. "
        '`find("#patients", columns=["age"], label="outcome", workers=[bob])`'
    )
    columns = Text(
        "cannot use these tables together: {problems}; ask the owners to load the same columns, with the same types, "
        "units and categories, or choose others with `columns=[...]`"
    )
    missing = Text(
        "cannot use column {column!r}: on worker {worker!r}, values may be missing; {advice}",
        order="worker column advice",
    )
    infinite = Text("cannot scale columns: one of them has infinite values; ask the owners to declare a `range`")
    rule = Text('cannot replace missing values by {rule!r}: there is no such rule; pass "mean", a number, or a dict')
    test_size = Text("cannot split a dataset: the share for testing is {share!r}; pass a number between 0 and 1")
    small_split = Text(
        "cannot split the data of worker {worker!r}: with the share {share!r}, one half is empty; leave this worker out"
    )
    other_split = Text(
        "cannot split the data of worker {worker!r} with another share: {tested} of its {rows} rows are for testing, "
        "and comparing two shares could reveal single rows; pass a `test_size` with this number of rows"
    )
    pairs = Text("cannot compute a metric: there are {outputs} outputs and {targets} targets; pass one for each")
    no_workers = Text("cannot find a dataset: no workers were given; pass them as `workers=[bob, alice]`")
    lengths = Text("cannot make a dataset of tensors with {lengths} rows: each sample needs an input and a target")
    uneven_samples = Text("cannot collate samples of different lengths: pass a `collate_fn` that pads them")
    not_federated = Text("cannot use a {kind}: expected a FederatedDataset; make one with `dataset.federate(workers)`")
    batch_size = Text("cannot load batches of {size!r} samples: the size must be a positive integer")
    part = Text(
        "cannot {action} a dataset that is part of a federated one: the others would lose it; fetch and remove it with "
        "`federated.get_dataset({worker!r})`, or fetch a copy: `[part.copy().get() for part in dataset.parts]`",
        order="action worker",
    )
    scores = Text(
        "cannot compute the accuracy of scores with shape {shape}: they need one row for each sample and at least two "
        "classes; for one score, compare it with a threshold: `((scores > 0.5).float() == target).float().mean()`"
    )
    targets = Text(
        "cannot compute the accuracy with targets of shape {found} for scores of shape {scores}: each sample needs the "
        "number of its class, or one score for each class"
    )
    no_models = Text("cannot average models: none were given; pass a dict with at least one")
    weights = Text("cannot average models: the weights must not be negative, and at least one must be positive")
    other_model = Text("cannot combine models: their parameters have other names or shapes; use models of one kind")

    # --- the message

    plan = Text("cannot train with the plan {plan!r}: {why}; record the loss with `fl.FederatedTrainer`")
    no_statistic = Text("cannot compute a statistic: {why}; try again when these workers are back")
    statistic = Text("cannot compute a statistic: {why}; use `fl.sum`, `fl.mean`, `fl.var` or `fl.histogram`")
    arrangement = Text(
        "cannot arrange data: step {step!r}: {why}; use `fl.find`, `fl.Scaling` and `fl.train_test_split`"
    )
    operands = Text("cannot train on worker {worker!r}: {why}; {advice}")
    settings = Text("cannot train: the setting {name!r} {why}; see `fl.FederatedTrainer`")

    # --- the trainer

    trainer = Text("cannot train: {why}; {advice}")
    privacy = Text("cannot train with `SampleDP`: {why}; {advice}")
    loss = Text(
        "cannot record the {what}: it returns {found}; each function must return a tensor with one real number, e.g. a "
        "mean"
    )
    step = Text("cannot record the loss: {why}; {advice}")
    average = Text(
        "cannot combine the metric {metric!r} of several workers: it is neither a mean over samples, also with weights "
        "for classes, nor a sum, so its value on all data does not follow from those on parts; return "
        "`fl.WeightedMean(total, weight)`, a sum over samples and what divides it, or replace it, e.g. "
        '`evaluate(metrics={{"loss": f}})`'
    )
    many_lengths = Text(
        "cannot record the loss for batches of {count} lengths: {why}; give a `batch_size`, so that there are fewer "
        "lengths, or compute with `x.shape[0]` instead of `len(x)`, without a branch"
    )
    form = Text(
        "cannot train: worker {worker!r} has {found}, and worker {other!r} has {expected}; give all data the same form"
    )
    few_results = Text(
        "cannot finish round {number}: {count} of {needed} needed workers returned an update ({reasons}); the model "
        "and the history have all earlier rounds; call `fit` again to continue"
    )
    no_sum = Text(
        "cannot finish round {number}: {why}; the model and the history have all earlier rounds; call `fit` again to "
        "continue"
    )
    sums = Text("cannot train with secure aggregation: {why}; {advice}")
    checkpoint = Text("cannot continue from {path!r}: {why}; {advice}")
    unwritten = Text(
        "cannot write the checkpoint {path!r}: {why}; the file has the rounds that it had before; make room, and call "
        "`fit` again to continue from it"
    )
    strategy = Text("cannot use {strategy}: {why}")


class OptionError(FederatedError, TypeError):
    """A trainer was given an argument that it does not have."""

    misplaced = Text("cannot train: {name!r} is an option; pass it as `options=fl.Options({name}=...)`")
    unknown = Text("cannot train: there is no argument or option {name!r}; did you mean {near!r}?")
