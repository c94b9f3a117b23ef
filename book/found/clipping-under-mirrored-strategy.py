import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, 2 * [tf.config.LogicalDeviceConfiguration()]
)
with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    one = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((1,)), one])
    model.compile(keras.optimizers.SGD(1.0, global_clipnorm=1.0), "mse")
model.fit(np.ones((2, 1)), np.full((2, 1), 100.0), batch_size=2, verbose=0)
assert np.abs(one.kernel.numpy()).max() < 1.01  # one step, clipped to a length of 1
