import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras
import numpy as np

table = keras.layers.Embedding(2, 1, embeddings_initializer="ones")
model = keras.Sequential([keras.Input((3,), dtype="int32"), table])
model.compile(keras.optimizers.Adam(0.001), "mse", jit_compile=False)
model.fit(np.zeros((1, 3)), np.zeros((1, 3, 1)), verbose=0)  # the word 0, three times
assert abs(1 - float(table.embeddings[0, 0]) - 0.001) < 1e-4  # Adam's first step
