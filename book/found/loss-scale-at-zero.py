import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import keras
import numpy as np

weight = keras.Variable(np.zeros(1), dtype="float32")
sgd = keras.optimizers.SGD(0.1)
optimizer = keras.optimizers.LossScaleOptimizer(sgd, initial_scale=2.0**-120)
optimizer.build([weight])
for gradient in [np.nan] * 30 + [0.0]:  # 30 bad batches, then a good one
    optimizer.apply([keras.ops.full((1,), gradient)], [weight])
assert weight.numpy()[0] == 0
