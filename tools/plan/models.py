"""The models in Keras, and a training step and a forward pass of each backend."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
from keras import layers

from benchmarks.engines.frameworks import Framework
from benchmarks.sizes import Conv, Mlp, Size, batch_of
from snippets.waiting import wait_for

POLICIES = {"float32": "float32", "tf32": "float32"}


class Position(layers.Layer):
    """Adds a learned vector for each place in a text: shape (batch, length, width)."""

    def build(self, shape):
        """Make the weights, of shape (length, width)."""
        self.places = self.add_weight(shape=shape[1:], initializer="random_normal")

    def call(self, x):
        """Add them."""
        return x + self.places


def build(size: Size) -> keras.Model:
    """The model of a size, uncompiled: it returns logits in float32."""
    dtype = "float32" if isinstance(size, (Mlp, Conv)) else "int32"
    inputs = x = keras.Input(size.inputs_shape, dtype=dtype)
    if isinstance(size, Mlp):
        for _ in range(size.layers):
            x = layers.Dense(size.width, "relu")(x)
        x = layers.Dense(size.classes)(x)
    elif isinstance(size, Conv):
        for filters in size.filters:
            for _ in range(2):
                x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
            x = layers.MaxPooling2D()(x)
        x = layers.Dense(size.classes)(layers.GlobalAveragePooling2D()(x))
    else:
        x = Position()(layers.Embedding(size.vocabulary, size.width)(x))
        for _ in range(size.layers):
            y = layers.LayerNormalization(epsilon=1e-5)(x)
            heads = layers.MultiHeadAttention(size.heads, size.width // size.heads)
            x = x + heads(y, y, use_causal_mask=True)
            y = layers.LayerNormalization(epsilon=1e-5)(x)
            y = layers.Dense(4 * size.width, "gelu")(y)
            x = x + layers.Dense(size.width)(y)
        x = layers.LayerNormalization(epsilon=1e-5)(x)
        x = layers.Dense(size.vocabulary)(x)
    return keras.Model(inputs, layers.Activation("linear", dtype="float32")(x))


class Same(keras.utils.PyDataset):
    """A data set that gives the same batch of arrays `steps` times."""

    def __init__(self, batch: tuple[np.ndarray, np.ndarray], steps: int):
        super().__init__()
        self.batch, self.steps = batch, steps

    def __len__(self):
        """The number of batches."""
        return self.steps

    def __getitem__(self, index):
        """One of them."""
        return self.batch


def prepare(size: Size, precision: str, mode: str) -> keras.Model:
    """The model of a size with its policy, its optimizer and its way to run."""
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(POLICIES.get(precision, precision))
    model = build(size)
    eager = mode == "eager"
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=mode == "compiled",
        run_eagerly=eager and keras.backend.backend() == "tensorflow",
    )
    return model


def training(model: keras.Model, size: Size, batch: int) -> Callable[[int], float]:
    """A function that trains for some steps of `fit` and returns the last mean loss."""
    data = batch_of(size, batch)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        once = tf.data.Dataset.from_tensors(data)
        many = once.repeat
    else:

        def many(steps):
            return Same(data, steps)

    return lambda steps: model.fit(many(steps), verbose=0).history["loss"][-1]


def inference(
    model: keras.Model, size: Size, batch: int, framework: Framework, mode: str
) -> Callable[[int], object]:
    """A function that runs some forward passes and returns the last logits."""
    inputs, _ = batch_of(size, batch)
    backend = keras.backend.backend()
    if backend == "jax":
        state = model.trainable_variables, model.non_trainable_variables
        state = [[variable.value for variable in part] for part in state]
        step = framework.transform(
            lambda trained, other, x: model.stateless_call(trained, other, x)[0], mode
        )

        def forward(x):
            return step(*state, x)
    else:
        forward = framework.transform(lambda x: model(x, training=False), mode)

    def run(steps):
        for _ in range(steps):
            logits = forward(keras.ops.convert_to_tensor(inputs))
        return wait_for(logits)

    if backend != "torch":
        return run

    def run_without_gradients(steps):
        with framework.torch.no_grad():
            return run(steps)

    return run_without_gradients
