"""How long is a call, a `predict`, a step and an epoch of `fit`, on any device?

Use: `seconds_per_call(function)`, `time_predict(model, inputs)`, and
`time_fit(model, inputs, targets, epochs=5)`, or `fit(..., callbacks=[Stopwatch()])`.
It does not know what a step is made of (a profiler does), nor others on the machine.
"""

import statistics
import sys
import time
from numbers import Number

try:
    import keras
except ImportError as error:
    raise SystemExit(f"stopwatch.py needs Keras and an engine: {error}") from None


def wait_for(result):
    """Wait until a device has finished a tensor, or a list, tuple or dict of them.

    Raises:
        TypeError: there is nothing to wait for.
    """
    framework = type(result).__module__.partition(".")[0]
    library = sys.modules.get(framework)
    if isinstance(result, (list, tuple, dict)) and result:
        for part in result.values() if isinstance(result, dict) else result:
            wait_for(part)
    elif hasattr(result, "block_until_ready"):  # JAX
        result.block_until_ready()
    elif framework == "tensorflow":
        library.test.experimental.sync_devices()
    elif framework == "torch":
        if result.device.type != "cpu":
            library.accelerator.synchronize(result.device)
    elif framework != "numpy" and not isinstance(result, Number):
        raise TypeError(f"cannot wait for {result!r}: return what was computed")
    return result


def seconds_per_call(function, *args, repeats=9):
    """Median seconds from a call until its result is there; the first is left out."""
    samples = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        wait_for(function(*args))
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[1:])


def time_predict(model, inputs, repeats=5, **options):
    """Median seconds of `model.predict(inputs, **options)`, and samples a second."""
    rows = []

    def predict():
        outputs = model.predict(inputs, verbose=0, **options)
        rows.append(len(keras.tree.flatten(outputs)[0]))
        return outputs

    seconds = seconds_per_call(predict, repeats=repeats)
    return seconds, rows[-1] / seconds


def wait_for_training(model):
    """Wait until the device has done the steps that `fit` has given it so far."""
    if keras.backend.backend() == "tensorflow":
        sys.modules["tensorflow"].test.experimental.sync_devices()
    elif keras.backend.backend() == "jax":  # `fit` keeps the weights outside the model
        values = [variable.value for variable in model.variables]
        sys.modules["jax"].block_until_ready(getattr(model, "_jax_state", 0) or values)
    elif (torch := sys.modules["torch"]).accelerator.is_available():
        torch.accelerator.synchronize()


class Stopwatch(keras.callbacks.Callback):
    """Times `fit`, and the first epoch apart, in which it compiles.

    first: seconds of the first epoch. epochs: of each later one, without validation.
    steps: of a step in each of these, from the second to the last but one. It waits for
    the device there, and does nothing at the end of a step, where Keras would wait.
    """

    def on_train_begin(self, logs=None):
        """Forget an earlier training."""
        self.first, self.epochs, self.steps, self.last = None, [], [], None

    def on_epoch_begin(self, epoch, logs=None):
        """Start."""
        self.marks, self.begun, self.end = {}, 0, None
        self.start = time.perf_counter()

    def on_train_batch_begin(self, batch, logs=None):
        """Wait before the second step and before the last."""
        self.begun = batch
        if self.first is not None and batch and (not self.marks or batch == self.last):
            self.marks[batch] = self._now()

    def on_test_begin(self, logs=None):
        """The training of this epoch is over."""
        self.end = self.end or self._now()

    def on_epoch_end(self, epoch, logs=None):
        """Note the epoch, and its step."""
        seconds = (self.end or self._now()) - self.start
        if self.first is None:
            self.first, self.last = seconds, self.begun
            return
        self.epochs.append(seconds)
        marks = list(self.marks.items())
        if len(marks) == 2:
            (a, start), (b, end) = marks
            self.steps.append((end - start) / (b - a))

    def _now(self):
        wait_for_training(self.model)
        return time.perf_counter()


def rows_of(inputs, steps=None, validation_split=0, batch_size=None):
    """Samples of an epoch: of arrays, or of a dataset, which is read once for it."""
    if hasattr(inputs, "shape") or isinstance(inputs, (list, dict)):
        rows = int(len(keras.tree.flatten(inputs)[0]) * (1 - (validation_split or 0)))
        return min(rows, steps * (batch_size or 32)) if steps else rows
    if hasattr(inputs, "__next__"):
        raise ValueError("a generator would be used up: pass samples= of an epoch")
    try:
        length = steps or getattr(inputs, "num_batches", None) or len(inputs)
    except TypeError:  # made by from_generator or filter
        raise ValueError("unknown length: pass samples= of an epoch") from None
    batches = (
        (inputs[i] for i in range(length)) if hasattr(inputs, "num_batches") else inputs
    )
    batches = zip(range(length), batches)
    return sum(len(keras.tree.flatten(batch)[0]) for _, batch in batches)


def time_fit(model, inputs, targets=None, epochs=5, samples=None, **options):
    """Train a compiled model, and print what a step and an epoch took.

    Args:
        model, inputs, targets, **options: as for `fit`, which changes the weights.
        epochs: three or more.
        samples: of an epoch, if `inputs` is a generator, or does not know its length.

    Returns:
        Seconds of an epoch and of a step (medians, the first epoch left out), and
        samples a second.

    Raises:
        ValueError: too few epochs or steps, or no number of samples.
    """
    if epochs < 3:
        raise ValueError("time three epochs or more: the first is left out")
    names = ("steps_per_epoch", "validation_split", "batch_size")
    samples = samples or rows_of(inputs, *map(options.get, names))
    watch = Stopwatch()
    callbacks = [*options.pop("callbacks", []), watch]
    settings = {"verbose": 0, **options, "epochs": epochs, "callbacks": callbacks}
    model.fit(inputs, targets, **settings)
    if not watch.steps:
        raise ValueError("an epoch of fewer than three steps does not tell their time")
    epoch, step = statistics.median(watch.epochs), statistics.median(watch.steps)
    print(f"a step {1e3 * step:.3g} ms, an epoch {epoch:.3g} s", end=", ")
    print(
        f"{samples / epoch:,.0f} samples a second; the first epoch {watch.first:.3g} s"
    )
    return epoch, step, samples / epoch
