import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras
import numpy as np

weight = keras.Variable(np.zeros(1), dtype="bfloat16")
adam = keras.optimizers.Adam(0.1)
adam.apply([keras.ops.ones(1, "bfloat16")], [weight])
assert weight.numpy()[0] != 0
