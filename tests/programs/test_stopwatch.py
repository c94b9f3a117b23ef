"""The stopwatch finds the length of steps that are known, without what is compiled."""

import pytest

from tests.programs.engines import ENGINES, on

SOURCE = """
import json, time, keras, numpy as np, stopwatch

class Slow(keras.utils.PyDataset):
    def __init__(self, rows=44):
        super().__init__()
        self.rows = rows
    def __len__(self):
        return -(-self.rows // 8)
    def __getitem__(self, index):
        time.sleep(0.02)
        rows = min(8, self.rows - 8 * index)
        return np.ones((rows, 4), "float32"), np.ones((rows, 1), "float32")

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
validation = np.ones((8, 4)), np.ones((8, 1))
options = {"epochs": 4, "validation_data": validation}
found = {"slow": stopwatch.time_fit(model, Slow(), **options)}

x, y = np.ones((44, 4), "float32"), np.ones((44, 1), "float32")
found["arrays"] = stopwatch.time_fit(model, x, y, batch_size=8)
found["named"] = stopwatch.rows_of({"a": x, "b": x})
def refused(function, *args, **options):
    try:
        function(*args, **options)
    except (ValueError, TypeError) as error:
        return str(error)

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
    found["data"] = stopwatch.time_fit(model, data)
    found["some"] = stopwatch.rows_of(data.repeat(), 3)
    unknown = data.filter(lambda *pair: True)
    found["unknown"] = refused(stopwatch.time_fit, model, unknown)
if keras.backend.backend() == "torch":
    import torch
    pairs = torch.utils.data.TensorDataset(torch.ones(44, 4), torch.ones(44, 1))
    found["data"] = stopwatch.time_fit(model, torch.utils.data.DataLoader(pairs, 8))
found["predict"] = stopwatch.time_predict(model, x)

found["part"] = [stopwatch.rows_of(x, *some) for some in [(4, 0, 8), (None, 0.75)]]

def late():
    time.sleep(0.02)
    return keras.ops.ones((2,))

found["call"] = stopwatch.seconds_per_call(late)
found["said"] = [
    refused(stopwatch.seconds_per_call, lambda: None),
    refused(stopwatch.time_fit, model, x, y, epochs=2),
    refused(stopwatch.time_fit, model, x, y),
    refused(stopwatch.time_fit, model, (pair for pair in [])),
]
found["first"] = watch = stopwatch.Stopwatch()
model.compile("sgd", "mse")
model.fit(Slow(), epochs=3, verbose=0, callbacks=[watch])
found["first"] = watch.first, *watch.epochs
print(json.dumps(found))
"""


@pytest.mark.slow  # chapter 2 has its steps timed in each run
@pytest.mark.parametrize("engine", ENGINES)
def test_steps_of_a_known_length_are_timed(engine):
    found = on(engine, SOURCE)
    epoch, step, rate = found["slow"]
    assert step >= 0.02 and 6 * step <= 1.5 * epoch  # no limit on a busy machine
    assert rate == pytest.approx(44 / epoch)
    for name in {"arrays", "data"} & set(found):
        epoch, step, rate = found[name]
        assert 0 < step < epoch and rate == pytest.approx(44 / epoch)
    assert found["named"] == 44 and found.get("some", 24) == 24
    assert found["part"] == [32, 11] and "samples=" in found.get("unknown", "samples=")
    seconds, rate = found["predict"]
    assert rate == pytest.approx(44 / seconds)
    assert found["call"] >= 0.02
    nothing, epochs, steps, generator = found["said"]
    assert "return what was computed" in nothing and "three epochs" in epochs
    assert "fewer than three steps" in steps and "samples=" in generator
    first, *later = found["first"]
    assert min(later) >= 0.12 and (engine == "torch" or first > min(later))
