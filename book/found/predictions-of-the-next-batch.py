import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import keras
import numpy as np


class Numbers(keras.utils.PyDataset):
    def __init__(self):
        super().__init__(workers=4)

    def __len__(self):
        return 5

    def __getitem__(self, number):
        return (np.array([[number]], "float32"),)


model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
answers = model.predict(Numbers(), verbose=0).ravel()
assert (answers == range(5)).all(), f"the answers to 0, 1, 2, 3, 4 are {answers}"
