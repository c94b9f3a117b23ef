import os

os.environ["KERAS_BACKEND"] = "torch"  # or "jax"
os.environ["KERAS_TORCH_DEVICE"] = "cpu"
import keras
import numpy as np


class Numbers(keras.utils.PyDataset):
    def __init__(self):
        super().__init__(workers=4)

    def __len__(self):
        return 20

    def __getitem__(self, number):
        return np.array([[number]], "float32"), np.zeros(1)


dense = keras.layers.Dense(1, kernel_initializer="ones")
model = keras.Sequential([keras.Input((1,)), dense])
model.compile(loss=lambda target, output: output)  # the mean of all numbers
first, second = (model.evaluate(Numbers(), verbose=0) for _ in range(2))
assert first == second, f"the mean of 0, 1 ... 19 is {first:.1f}, and then {second:.1f}"
