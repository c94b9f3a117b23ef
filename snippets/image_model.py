import keras


def image_model(width=256, blocks=2, **settings):
    """A classifier of 32 x 32 pictures, made of a transformer's feed-forward blocks.

    It takes bytes (0 to 255), gives ten logits, and is compiled with Adam.

    Args:
        width: numbers that each block takes and gives.
        blocks: how many there are.
        **settings: for `compile`, such as jit_compile=True.
    """
    layers = keras.layers
    pictures = keras.Input((32, 32, 3))
    x = layers.Flatten()(layers.Rescaling(1 / 255)(pictures))
    x = layers.Dense(width)(x)
    for _ in range(blocks):
        y = layers.LayerNormalization()(x)
        y = layers.Dense(4 * width, activation="gelu")(y)
        x = layers.Add()([x, layers.Dense(width)(y)])
    model = keras.Model(pictures, layers.Dense(10, dtype="float32")(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, **settings)
    return model
