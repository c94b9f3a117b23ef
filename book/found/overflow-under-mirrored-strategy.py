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
    one = keras.layers.Dense(1, use_bias=False)
    model = keras.Sequential([keras.Input((1,)), one])
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)), "mse")
values = np.float32([[1.0], [1e36]])  # the second device's gradient overflows
model.fit(values, np.ones((2, 1)), batch_size=2, shuffle=False, verbose=0)
assert np.isfinite(one.kernel.numpy()).all()  # the step is to be skipped
