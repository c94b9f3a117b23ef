import os

os.environ["KERAS_BACKEND"] = "openvino"
import keras
import openvino as ov

model = keras.Sequential([keras.Input((5, 3)), keras.layers.LSTM(4)])
model.export("model.xml", format="openvino")  # no error
ov.Core().compile_model("model.xml", "CPU")
