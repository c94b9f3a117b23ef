import os

os.environ["KERAS_BACKEND"] = "torch"
os.environ["KERAS_TORCH_DEVICE"] = "cpu"
import keras
import numpy as np


def draws(seed):
    generator = keras.random.SeedGenerator(seed)
    numbers = [keras.random.normal((3,), seed=generator) for _ in range(2)]
    return keras.ops.convert_to_numpy(keras.ops.stack(numbers))


assert not np.array_equal(draws(0)[1], draws(1)[0])
