"""What is wrong with my Keras classifier, or with its data?

Use: `from examine import examine, examine_data, first_not_finite`, then
`print(examine(model, x, y))`. A small model takes 1 to 20 seconds on a CPU.
It does not know regressions, several labels for a sample, several outputs, and
whether a larger model or more data would help.
"""

import contextlib
import inspect
import time
from unittest import mock

try:
    import keras
    import numpy as np
    from keras import ops, tree
except ImportError as error:
    raise ImportError(f"examine.py needs Keras 3 and an engine: {error}") from error

RATES = 0.01, 0.001, 0.1, 0.0001  # of Adam: a healthy model learns with one of them


def examine(model, x, y=None, steps=300, seconds=60):
    """Findings about a compiled classifier, as texts; [] is good.

    A copy of the model is trained on ten samples, at several learning rates; the model
    stays as it is. A text that begins with "remark" is no proof of a mistake.

    Args:
        x: an array, or several in a list or a dictionary; or a set of batches.
        y: numbers of the classes, or one-hot rows; None if x holds batches.
        steps: of training at each rate, at most.
        seconds: after which no more steps are made.

    Raises:
        ValueError: it can't examine this; the text says why, and what to do.
    """
    end = time.monotonic() + seconds
    if not getattr(model, "compiled", False) or model.loss is None:
        raise ValueError("examine needs a Keras model that is compiled with a loss")
    x, every_y = _read(x if y is None else (x, y), 5000)
    for name, part in {"x": x, "y": every_y}.items():
        if not _finite(part):
            return [f"data: {name} holds NaN or infinity"]
    x, y = _pick(x, every_y, 64)
    findings, copy = _changed_since_fit(model), _copy(model, x)
    answers, again = (_table(copy.predict(x, verbose=0)) for _ in range(2))
    if not _finite(answers):
        return [*findings, f"answers: not finite, first in {first_not_finite(copy, x)}"]
    if not np.allclose(answers, again, atol=1e-3):
        findings.append("two predictions: they differ")
    y, low, classes = _labels(y, answers), answers.min(), answers.shape[1]
    if classes > 1:
        _labels(every_y, answers)  # it refuses what no class is
    (loss,) = map(keras.losses.get, tree.flatten(model.loss))
    told = getattr(loss, "from_logits", None)
    if inspect.isfunction(loss) and "from_logits" in inspect.signature(loss).parameters:
        told = inspect.signature(loss).parameters["from_logits"].default
    if told is False and (low < 0 or answers.max() > 1):
        findings.append(
            "outputs: no probabilities, and the loss lacks from_logits=True"
        )
    if told and classes > 1 and low >= 0 and np.allclose(answers.sum(1), 1, atol=0.01):
        findings.append("outputs: a softmax, and from_logits=True adds another one")
    constant = (np.full_like(answers, p) for p in (1 / classes, 0.5))
    first, *guesses = (_cost(loss, y, each) for each in (answers, *constant))
    if not first < 5 * max(guesses):
        text = f"first loss: {first:.2f}, guessing costs {max(guesses):.2f}"
        findings.append(text)
    return findings + _train(model, copy, _pick(x, y, 10), max(guesses), steps, end)


def first_not_finite(model, x):
    """Where a model first computes NaN or infinity; "" if nowhere.

    Returns:
        "the data", a weight, the innermost layer, "before LAYER" if what this layer
        gets is not finite, or the model itself for what it computes after its layers.
    """
    if not isinstance(model, keras.Layer) or not model.built:
        raise ValueError("first_not_finite needs a Keras model that was called once")
    if not _finite(x):
        return "the data"
    found = [weight.path for weight in model.weights if not _finite(weight)]
    plain = keras.Operation.__call__

    def watched(layer, *inputs, **options):
        before = "" if _finite((inputs, options)) else "before "
        outputs = plain(layer, *inputs, **options)
        if not _finite(outputs):
            found.append(before + (getattr(layer, "path", None) or layer.name))
        return outputs

    with mock.patch.object(keras.Operation, "__call__", watched):
        model(x)
    return (found or [""])[0]


def examine_data(training, validation, most=20_000):
    """Findings about two sets of data for a classifier; [] is good.

    Args:
        training, validation: batches (x, y) in a tf.data.Dataset, a PyDataset, a
            DataLoader or a list; or a tuple (x, y) of arrays.
        most: samples that are read of each.

    Raises:
        ValueError: y does not hold one class for each sample.
    """
    (x, y), (again, _) = (_read(validation, most) for _ in range(2))
    keys, passes = _keys(x), [_read(training, most) for _ in range(3)]
    findings = []
    if keys != _keys(again):
        findings.append("order: two passes over the validation data differ")
    seen = {key for samples, _ in passes for key in _keys(samples)}
    if both := sum(key in seen for key in keys):
        findings.append(f"overlap: training sees {both} validation samples")
    (known, known_y), (asked, y) = _rows(*passes[0], 5000), _rows(x, y, 1000)
    distances = (known**2).sum(axis=1) - 2 * asked @ known.T  # + |asked|^2
    right = np.mean(known_y[distances.argmin(axis=1)] == y)
    largest = np.unique(y, return_counts=True)[1].max() / len(y)
    if known.size and right < largest + 0.1 * (1 - largest):  # it knows nothing
        findings.append(f"labels: {right:.0%} as the nearest, by chance {largest:.0%}")
    return findings


def _train(model, copy, few, guess, steps, end):
    """Findings from training the copy on ten samples, each time from the start."""
    weights, findings = copy.weights, []
    trained = {id(weight) for weight in copy.trainable_weights}
    names = {id(ours): theirs.path for ours, theirs in zip(weights, model.weights)}
    begin, idle, learnt, fresh = _values(copy.variables), {*trained}, [], []

    def start(optimizer, **settings):
        copy.compile(optimizer, model.loss, metrics=["accuracy"], **settings)
        copy.optimizer.build(copy.trainable_variables)
        fresh[:] = _values(copy.optimizer.variables)

    def run(count, rate=None):
        for v, value in zip(
            [*copy.variables, *copy.optimizer.variables], begin + fresh
        ):
            v.assign(value)
        if rate:
            copy.optimizer.learning_rate = rate
        before, losses, right = _values(weights), [], 0
        while len(losses) < count and (len(losses) < 2 or time.monotonic() < end):
            copy.reset_metrics()
            seen = copy.train_on_batch(*few, return_dict=True)
            losses.append(float(seen["loss"]))
            right = max(right, float(seen["accuracy"]))
            if rate and right == 1:
                break
        moved = {id(w) for w, o in zip(weights, before) if (_array(w) != o).any()}
        idle.difference_update(moved)
        if right < 1:  # moving averages and dropout make a difference
            answers = _table(copy.predict_on_batch(few[0]))
            right = max(right, np.mean(_classes(answers) == _classes(few[1])))
        learnt.append(right)
        return losses, moved

    settings = model.optimizer.get_config()
    own = type(model.optimizer).from_config(settings)
    start(own, run_eagerly=model.run_eagerly, jit_compile=model.jit_compile)
    with mock.patch.object(copy, "call", wraps=copy.call) as call:  # counts
        losses, moved = run(30)
    if not (most := np.max(losses)) < 10 * max(guess, losses[0]):
        text = f"learning rate: too high, the loss goes from {losses[0]:.3g} to "
        findings.append(f"{text}{most:.3g}")
    made = {id(w) for layer in _layers(copy) for w in layer._trainable_variables}
    frozen = made - trained
    for rate in RATES[:: 2 if frozen else 1]:
        if max(learnt) == 1 and (len(learnt) > 1 or not idle):
            break
        plain = type(own) is keras.optimizers.Adam and not model.run_eagerly
        plain = plain and isinstance(settings["learning_rate"], float)
        if len(learnt) == 1 and not plain:
            start(keras.optimizers.Adam(), auto_scale_loss=False)
        run(60 if frozen else steps, rate)
    why = "some weights are frozen" if frozen else "the time is over"
    remark = f"remark ({why}): " if frozen or time.monotonic() > end else ""
    if max(learnt) < 1:
        findings.append(f"{remark}ten samples: not learnt, {max(learnt):.0%} right")
    for name in (names[each] for each in frozen & moved):
        findings.append(f"weights: {name} is frozen and moves")
    for weight in (w for w in weights if id(w) in idle):
        run(0)
        before = _table(copy.predict_on_batch(few[0]))
        weight.assign(
            _array(weight) + np.random.default_rng(0).normal(size=weight.shape)
        )
        change = np.abs(_table(copy.predict_on_batch(few[0])) - before).max()
        if change == 0 or change > 1e-3 * np.abs(before).max():  # no rounding
            text = f"weights: {names[id(weight)]} is trained and stands still"
            findings.append((remark if max(learnt) < 1 else "") + text)
    if keras.backend.backend() != "torch" and call.call_count > 10:
        findings.append(f"traces: Python ran the model {call.call_count} times")
    return findings


def _copy(model, x):
    """A model with the same layers and weights, which gives the same answers."""
    few = tree.map_structure(lambda part: part[:4], x)
    try:
        copy = _again(model)
        copy(few)
        if {*map(id, _layers(copy))} & {*map(id, _layers(model))}:
            raise ValueError("the copy would share layers")
        for theirs, ours in zip(_layers(model), _layers(copy), strict=True):
            ours.trainable = theirs.trainable
        begin = _values(model.variables)
        for value, theirs, ours in zip(
            begin, model.variables, copy.variables, strict=True
        ):
            ours.assign(value)
            ours.trainable = theirs.trainable
        for layer in _layers(copy):
            getattr(layer, "finalize_state", lambda: None)()
        wanted, got, again = (each(few) for each in (model, copy, copy))
        for value, theirs, ours in zip(begin, model.variables, copy.variables):
            theirs.assign(value)  # a layer may have drawn random numbers
            ours.assign(value)
        problem = ""
    except Exception as error:
        why = " ".join(str(error).split())[:160]
        problem = f"{type(error).__name__}: {why}"
    if not problem:
        wanted, got, again = map(_table, (wanted, got, again))
        if np.allclose(got, again) and not np.allclose(got, wanted, atol=1e-3):
            problem = "the copy answers otherwise"
    if problem:
        raise ValueError(
            f"{type(model).__name__} can't be copied and called on x ({problem}). Call "
            "it on x once; give your classes a get_config that builds the same layers"
        )
    return copy


def _again(layer):
    """A new layer or model of the same kind."""
    if getattr(layer, "inputs", None):
        return keras.models.clone_model(layer, clone_function=_again)
    if isinstance(layer, keras.layers.Lambda):
        shape = layer._output_shape
        return type(layer)(layer.function, shape, layer.mask, layer.arguments)
    try:
        return type(layer).from_config(layer.get_config())
    except Exception:  # no get_config of its own: the arguments that it was made with
        if not getattr(layer, "_auto_config", None):
            raise
        return type(layer)(**layer._auto_config.config)


def _changed_since_fit(model):
    """Weights that were frozen or unfrozen after `fit`, without a new `compile`."""
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    if not model.train_function or not optimizer.built:
        return []
    known = {id(weight) for weight in optimizer._trainable_variables}
    trained = {id(weight) for weight in model.trainable_weights}
    wrong = trained - known if keras.backend.backend() == "torch" else trained ^ known
    text = "was frozen or unfrozen after fit: compile again, with a new optimizer"
    return [f"weights: {w.path} {text}" for w in model.weights if id(w) in wrong]


def _labels(y, answers=None):
    """Labels as the answers want them, or the numbers of the classes; or a refusal."""
    classes = answers.shape[1] if answers is not None else None
    number, one = y.dtype.kind in "biuf", y.size == len(y)
    if classes == 1 and one and np.isin(y, (0, 1)).all():
        return y.reshape(answers.shape)
    if classes != 1 and number and one and y.min() >= 0 and (y == np.round(y)).all():
        if classes and y.max() >= classes:
            raise ValueError(f"labels go to {y.max()}, answers from 0 to {classes - 1}")
        if classes or len(np.unique(y)) <= max(20, len(y) / 2):
            return y if classes else y.ravel().astype(int)
    sums = number and y.ndim == 2 and y.min() >= 0 and not one and y.sum(1)
    if np.allclose(sums, 1, atol=1e-3) and classes in (None, y.shape[1]):
        return y if classes else _classes(y)
    raise ValueError(
        f"labels of shape {y.shape} are neither classes from 0 nor one-hot rows"
        f"{f' of {classes}' if classes else ''}: regressions and several labels for a "
        "sample can't be examined here"
    )


def _classes(rows):
    """The class of each row of answers, or of labels in any form."""
    if rows.ndim == 2 and rows.shape[1] > 1:
        return rows.argmax(axis=1)
    return rows.ravel() > 0.5 if rows.max() <= 1 else rows.ravel().astype(int)


def _cost(loss, y, answers):
    return float(
        ops.mean(loss(ops.convert_to_tensor(y), ops.convert_to_tensor(answers)))
    )


def _table(outputs):
    """Outputs as float32, one row for a sample; or a refusal."""
    shapes = [tuple(each.shape) for each in tree.flatten(outputs)]
    if len(shapes) != 1 or len(shapes[0]) != 2:
        raise ValueError(
            f"only one output (samples, classes) is examined, not {shapes}"
        )
    return _array(*tree.flatten(outputs)).astype("float32")


def _finite(data):
    """Whether all numbers are finite; a tensor of a trace has none."""
    for part in tree.flatten(data):
        with contextlib.suppress(Exception):
            part = _array(part)
            if part.dtype.kind not in "OSUT" and not np.isfinite(part).all():
                return False
    return True


def _read(data, most):
    """The samples, in the structure of x, and the labels of one pass, as arrays."""
    if not isinstance(data, tuple):
        batches, rows = [], 0
        for batch in data:
            batches.append(tree.map_structure(_array, tuple(batch)[:2]))
            rows += len(batches[-1][1])
            if rows >= most:
                break
        if isinstance(data, keras.utils.PyDataset):
            data.on_epoch_end()
        data = tree.map_structure(lambda *parts: np.concatenate(parts), *batches)
    x, y = tree.map_structure(_array, data[:2])
    sizes = {np.shape(part)[:1] for part in tree.flatten((x, y))}
    if len(sizes) != 1 or not max(sizes):
        raise ValueError("x and y need to be arrays with the same number of samples")
    return x, y


def _pick(x, y, count):
    """So many different samples, spread over the data."""
    rows = np.linspace(0, len(y) - 1, min(len(y), 8 * count)).astype(int)
    keys = _keys(tree.map_structure(lambda part: part[rows], x))
    rows = [*dict(zip(keys[::-1], rows[::-1])).values()][::-1]
    chosen = np.linspace(0, len(rows) - 1, min(len(rows), count)).astype(int)
    return tree.map_structure(lambda part: part[np.array(rows)[chosen]], (x, y))


def _keys(x):
    return [b"".join(part.tobytes() for part in row) for row in zip(*tree.flatten(x))]


def _rows(x, y, most):
    """Samples as rows of float32, without columns if they are words; their classes."""
    rows = np.linspace(0, len(y) - 1, min(len(y), most)).astype(int)
    parts = [part[rows].reshape(len(rows), -1) for part in tree.flatten(x)]
    words = any(part.dtype.kind != "f" and part.dtype != "uint8" for part in parts)
    table = np.zeros((len(rows), 0)) if words else np.concatenate(parts, axis=1)
    return table.astype("float32"), _labels(y)[rows]


def _layers(model):
    return model._flatten_layers()


def _values(variables):
    return [_array(variable).copy() for variable in variables]


def _array(values):
    return ops.convert_to_numpy(values)
