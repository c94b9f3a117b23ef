"""Ordinary models, each small: those on which the book's programs are tried.

Use: `model, inputs, targets = ordinary.MODELS["recurrent"](rows=8)`, then compile it
with `ordinary.LOSSES.get(name, "sparse_categorical_crossentropy")` and train.
It does not know your model. It holds one of each kind that makes a difference.
"""

import keras
import numpy as np
from keras import layers

MODELS = {}  # name: function of the number of rows; gives model, inputs, targets
FORMS = ("flat", "nested", "functional", "subclassed")  # of one network
LOSSES = {"two_inputs": {"kind": "sparse_categorical_crossentropy", "size": "mse"}}


def ordinary(function):
    """Add a function to MODELS, under its name."""
    MODELS[function.__name__] = function
    return function


def numbers(*shape):
    """Random numbers between 0 and 1, the same in each call."""
    return np.random.default_rng(0).random(shape, "float32")


def integers(bound, *shape):
    """Random whole numbers from 0 to below a bound, the same in each call."""
    return np.random.default_rng(1).integers(0, bound, shape, "int32")


@ordinary
def dense(rows=8):
    """Layers in a row."""
    hidden = [layers.Dense(32, activation="relu"), layers.Dense(16, activation="relu")]
    last = layers.Dense(4, activation="softmax")
    model = keras.Sequential([keras.Input((20,)), *hidden, last])
    return model, numbers(rows, 20), integers(4, rows)


@ordinary
def branches(rows=8):
    """A functional model with `Add` and `Concatenate`."""
    start = keras.Input((20,))
    left, right = layers.Dense(24)(start), layers.Dense(24, activation="relu")(start)
    both = layers.Concatenate()([layers.Add()([left, right]), start])
    model = keras.Model(start, layers.Dense(4, activation="softmax")(both))
    return model, numbers(rows, 20), integers(4, rows)


def _residual(layout):
    """Convolutions with batch normalisation and a shortcut, in a layout."""
    last = layout == "channels_last"
    axis, options = (-1 if last else 1), {"padding": "same", "data_format": layout}
    x = start = keras.Input((16, 16, 3) if last else (3, 16, 16))
    for filters in (8, 12):
        # 2 x 2: 1 x 1 with strides and under 16 channels can kill a process on a CPU
        # (https://github.com/uxlfoundation/oneDNN/issues/6035).
        short = layers.Conv2D(filters, 2, 2, **options)(x)
        x = layers.Conv2D(filters, 3, 2, use_bias=False, **options)(x)
        x = layers.ReLU()(layers.BatchNormalization(axis=axis)(x))
        x = layers.DepthwiseConv2D(3, **options)(x)
        x = layers.Add()([layers.BatchNormalization(axis=axis)(x), short])
        x = layers.ReLU()(x)
    x = layers.GlobalAveragePooling2D(data_format=layout)(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(start, layers.Dense(4, activation="softmax")(x))


@ordinary
def residual(rows=8):
    """Residual convolutions with batch normalisation, `channels_last`."""
    return _residual("channels_last"), numbers(rows, 16, 16, 3), integers(4, rows)


@ordinary
def residual_channels_first(rows=8):
    """The same, `channels_first`."""
    return _residual("channels_first"), numbers(rows, 3, 16, 16), integers(4, rows)


@ordinary
def transfer(rows=8):
    """A frozen base of `keras.applications`, nested, with augmentation and a head."""
    augment = keras.Sequential([layers.RandomFlip(), layers.RandomRotation(0.1)])
    base = keras.applications.MobileNet(
        input_shape=(32, 32, 3), alpha=0.25, include_top=False, weights=None
    )
    base.trainable = False
    start = keras.Input((32, 32, 3))
    x = base(layers.Rescaling(1 / 127.5, -1)(augment(start)), training=False)
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(start, layers.Dense(4, activation="softmax")(x))
    return model, 255 * numbers(rows, 32, 32, 3), integers(4, rows)


@keras.saving.register_keras_serializable("ordinary")
class Subclassed(keras.Model):
    """A model as a class, with `training` in `call` and a model inside."""

    def __init__(self, **options):
        super().__init__(**options)
        self.hidden = [layers.Dense(32, activation="relu") for _ in range(2)]
        self.norm, self.drop = layers.BatchNormalization(), layers.Dropout(0.3)
        inner = [layers.Dense(24, activation="relu"), layers.Dense(16)]
        self.inner = keras.Sequential(inner)
        self.last = layers.Dense(4, activation="softmax")

    def call(self, rows, training=False):
        """Go through all layers; drop in training only."""
        for layer in self.hidden:
            rows = layer(rows)
        if training:
            rows = self.drop(rows, training=training)
        return self.last(self.inner(self.norm(rows, training=training)))


@ordinary
def subclassed(rows=8):
    """A class, whose weights exist once it was called."""
    model, inputs = Subclassed(), numbers(rows, 20)
    model(inputs)
    return model, inputs, integers(4, rows)


@ordinary
def recurrent(rows=8):
    """Words of any number, an LSTM that returns its state, a GRU."""
    words = keras.Input((None,), dtype="int32")
    x = layers.Embedding(50, 16)(words)
    x, state, _ = layers.LSTM(12, return_sequences=True, return_state=True)(x)
    x = layers.Concatenate()([layers.GRU(8)(x), state])
    model = keras.Model(words, layers.Dense(4, activation="softmax")(x))
    return model, integers(50, rows, 10), integers(4, rows)


@ordinary
def attention(rows=8):
    """Words with a mask, attention with its normalisation and a shortcut."""
    words = keras.Input((12,), dtype="int32")
    x = layers.Embedding(50, 16, mask_zero=True)(words)
    for _ in range(2):
        heads = layers.MultiHeadAttention(2, 8)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, heads]))
        x = layers.Add()([x, layers.Dense(16)(layers.Dense(32, activation="gelu")(x))])
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(words, layers.Dense(4, activation="softmax")(x))
    inputs = integers(50, rows, 12)
    inputs[:, 9:] = 0
    return model, inputs, integers(4, rows)


@ordinary
def two_inputs(rows=8):
    """Two inputs and two outputs, in dictionaries."""
    picture, table = (
        keras.Input((8, 8, 3), name="picture"),
        keras.Input((5,), name="table"),
    )
    x = layers.Flatten()(layers.Conv2D(4, 3, activation="relu")(picture))
    x = layers.Concatenate()([x, layers.Dense(8)(table)])
    outputs = {
        "kind": layers.Dense(3, activation="softmax", name="kind")(x),
        "size": layers.Dense(1, name="size")(x),
    }
    model = keras.Model({"picture": picture, "table": table}, outputs)
    inputs = {"picture": numbers(rows, 8, 8, 3), "table": numbers(rows, 5)}
    return model, inputs, {"kind": integers(3, rows), "size": numbers(rows, 1)}


def _in_16_bits(policy, rows):
    """Convolutions with batch normalisation under a policy, a last layer in float32."""
    x = start = keras.Input((16, 16, 3))
    for filters in (8, 16):
        x = layers.Conv2D(filters, 3, 2, padding="same", dtype=policy)(x)
        x = layers.BatchNormalization(dtype=policy)(x)
        x = layers.Activation("relu", dtype=policy)(x)
    x = layers.Dense(16, activation="relu", dtype=policy)(
        layers.Flatten(dtype=policy)(x)
    )
    last = layers.Dense(4, activation="softmax", dtype="float32")(x)
    return keras.Model(start, last), numbers(rows, 16, 16, 3), integers(4, rows)


@ordinary
def mixed_float16(rows=8):
    """Mixed precision with a loss scale, which `compile` puts in."""
    return _in_16_bits("mixed_float16", rows)


@ordinary
def mixed_bfloat16(rows=8):
    """Mixed precision without a loss scale."""
    return _in_16_bits("mixed_bfloat16", rows)


@ordinary
def lora(rows=8):
    """Frozen weights with adapters of rank 2 beside them, and a new head."""
    model, inputs, targets = dense(rows)
    for layer in model.layers[:-1]:
        layer.trainable = False  # its bias, too
        layer.trainable = True
        layer.enable_lora(2)
        layer.bias.trainable = False
    return model, inputs, targets


@ordinary
def wrapped(rows=8):
    """`TimeDistributed` and `Bidirectional` around other layers."""
    start = keras.Input((6, 10))
    x = layers.TimeDistributed(layers.Dense(12, activation="relu"))(start)
    x = layers.Bidirectional(layers.LSTM(8))(x)
    model = keras.Model(start, layers.Dense(4, activation="softmax")(x))
    return model, numbers(rows, 6, 10), integers(4, rows)


@ordinary
def shared(rows=8):
    """One layer in two branches."""
    first, second = keras.Input((20,)), keras.Input((20,))
    layer = layers.Dense(16, activation="relu")
    both = layers.Concatenate()([layer(first), layer(second)])
    model = keras.Model([first, second], layers.Dense(4, activation="softmax")(both))
    return model, [numbers(rows, 20), numbers(rows, 20)], integers(4, rows)


def form(name, rows=8):
    """One network of three layers, in one of FORMS.

    Returns:
        The model, its inputs and its targets.
    """
    first = layers.Conv2D(6, 3, padding="same", activation="relu")
    second, last = layers.Conv2D(6, 3, padding="same"), layers.Dense(4)
    head = [layers.Flatten(), last]
    if name == "flat":
        model = keras.Sequential([first, second, *head])
    elif name == "nested":
        model = keras.Sequential([keras.Sequential([first, second]), *head])
    elif name == "functional":
        start = keras.Input((8, 8, 3))
        model = keras.Model(start, last(layers.Flatten()(second(first(start)))))
    else:
        model = Chain([first, second, *head])
    inputs = numbers(rows, 8, 8, 3)
    model(inputs)
    return model, inputs, integers(4, rows)


class Chain(keras.Model):
    """Layers, one after the other, in a class."""

    def __init__(self, chain):
        super().__init__()
        self.chain = chain

    def call(self, rows):
        """Apply each layer."""
        for layer in self.chain:
            rows = layer(rows)
        return rows
