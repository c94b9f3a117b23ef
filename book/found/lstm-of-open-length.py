import os

os.environ["KERAS_BACKEND"] = "torch"
os.environ["KERAS_TORCH_DEVICE"] = "cpu"
import keras
import numpy as np
import openvino as ov

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((None, 3)), keras.layers.LSTM(4)])
model.export("model.xml", format="openvino")  # no error
five_steps = np.random.default_rng(0).normal(size=(1, 5, 3)).astype("float32")
answer = ov.Core().compile_model("model.xml", "CPU")(five_steps)[0]
assert abs(answer - model.predict(five_steps)).max() < 0.05  # room for 16 bits
