import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras
import numpy as np

square = np.zeros((3, 3), "float32")
column = np.array([[0.0], [1.0], [2.0]], "float32")
total = keras.ops.convert_to_numpy(keras.ops.add(square, column))
assert (total == square + column).all(), total  # the rows are 0 1 2, 0 1 2, 0 1 2
