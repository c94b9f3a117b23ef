"""The three models in Keras, compiled for training."""

import keras
from keras import layers

from tools.plan.sizes import Conv, Mlp, Size, inputs_shape


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
    inputs = x = keras.Input(inputs_shape(size), dtype=dtype)
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


def prepare(size: Size, policy: str, **how: bool) -> keras.Model:
    """The model of a size with a dtype policy, Adam and a loss.

    Args:
        size: one of `tools.plan.sizes.SIZES`.
        policy: a Keras dtype policy, such as "mixed_bfloat16".
        **how: what `compile` takes: `jit_compile`, `run_eagerly`.
    """
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(policy)
    model = build(size)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss, **how)
    return model
