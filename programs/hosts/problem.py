"""What is yours: the data, how they are read, the network and its loss."""

import functools
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np

# STEPS is epochs * (EXAMPLES // BATCH), and BATCH that of all workers together.
# (fit_jax.py has EPOCHS and VALID, at its own top, in place of STEPS.)
STEPS, BATCH, EXAMPLES = 12, 64, 256
SAVE_EVERY = 3  # steps from one checkpoint to the next; the chapter computes it
LOOK_EVERY = 1  # steps from one look for the file `stop` to the next
SHARDED = False  # on JAX: True if the state is too large for one card
generator = np.random.default_rng(0)
inputs = generator.normal(size=(EXAMPLES, 8)).astype("float32")
targets = np.tanh(inputs.sum(axis=1, keepdims=True))


def examples(rows):
    """The inputs and targets of these examples."""
    return inputs[rows], targets[rows]


def loss(y, outputs):
    """The loss of each example; the programs take the mean over the whole batch."""
    return keras.losses.mean_squared_error(y, outputs)


def network():
    """A small network, the same everywhere; its optimizer; the state of both."""
    hidden = keras.layers.Dense(16, "tanh", kernel_initializer="zeros")
    last = keras.layers.Dense(1, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((8,)), hidden, last])
    # These two lines make all engines begin alike. In yours write at the top instead:
    # keras.utils.set_random_seed(0), so that the trial can be compared.
    generator = np.random.default_rng(1)
    model.set_weights([generator.normal(0, 0.3, w.shape) for w in model.weights])
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    optimizer.build(model.trainable_variables)
    return model, optimizer, model.variables + optimizer.variables


@functools.lru_cache(1)
def order(epoch):
    """The numbers of all examples, shuffled, the same on every rank. Keep this."""
    return np.random.default_rng(epoch).permutation(EXAMPLES)


def rows(step, rank=0, world=1):
    """The numbers of the examples that one rank uses in a step. Keep this, too."""
    epoch, position = divmod(step, EXAMPLES // BATCH)
    batch = order(epoch)[position * BATCH : (position + 1) * BATCH]
    return np.split(batch, world)[rank]  # an error if the parts are not equal


reader, ahead = ThreadPoolExecutor(1), {}


def batch(step, rank=0, world=1):
    """A rank's examples of a step; those of the next are read meanwhile. Keep this."""
    for n in (step, step + 1):
        if n not in ahead and (n == step or n < STEPS):
            ahead[n] = reader.submit(lambda n=n: examples(rows(n, rank, world)))
    return ahead.pop(step).result()
