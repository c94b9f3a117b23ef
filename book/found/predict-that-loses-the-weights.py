import contextlib
import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import keras
import numpy as np

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((8, 3)), np.ones((8, 1)), verbose=0)
with contextlib.suppress(ValueError):  # the model takes three numbers, not four
    model.predict(np.ones((1, 4)), verbose=0)
model.get_weights()
