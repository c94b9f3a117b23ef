import os

os.environ["KERAS_BACKEND"] = "openvino"
import keras
import numpy as np

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
ones = np.ones((1, 3), "float32")
model.predict(ones, verbose=0)
model.set_weights([np.full((3, 1), 10.0), np.zeros(1)])
assert abs(model.predict(ones, verbose=0)[0, 0] - 30) < 0.1
