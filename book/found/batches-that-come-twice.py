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
        return np.array([number]), np.zeros(1)


# A step takes 1 from the row of its number, so an epoch counts how often each comes.
model = keras.Sequential([keras.layers.Embedding(20, 1, "zeros")])
model.compile(keras.optimizers.SGD(1.0), lambda target, output: output)
model.fit(Numbers(), verbose=0)
times = -model.get_weights()[0].ravel()
assert (times == 1).all(), f"in one epoch the 20 batches come {times} times"
