import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import keras


class Segment(keras.layers.Layer):
    def build(self, shape):
        self.dropout = keras.layers.Dropout(0.5)

    def call(self, values, training=None):
        return keras.remat(lambda x: self.dropout(x, training=training))(values)


model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), Segment()])
model.compile("sgd", "mse")
model.fit(keras.ops.ones((8, 4)), keras.ops.ones((8, 4)), verbose=0)
