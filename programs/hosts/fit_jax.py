"""Keep `fit` on several hosts, with epochs, callbacks and validation; JAX.

Run `bash start_jax.sh 0 fit_jax.py` and, on the second host, with 1 in place of 0.
"""

from jax_worker import gather, rank, state, world  # first: it connects

# isort: split
import checkpoint
import keras
import numpy as np
import one_file
import problem
from two_jax import model

EPOCHS, VALID = 3, 1  # VALID: how many batches are kept for validation


class Mine(keras.utils.PyDataset):
    """This host's part of each batch; a thread reads the next one, as from files.

    With `workers` of Keras an epoch has some batches twice: "What this book found".
    """

    def __init__(self, batches):
        super().__init__()
        self.batches, self.ahead = batches, {}

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, step):
        for soon in range(step, min(step + 2, len(self))):
            if soon not in self.ahead:
                rows = self.batches[soon]
                self.ahead[soon] = problem.reader.submit(problem.examples, rows)
        return self.ahead.pop(step).result()


def mixed(epoch, logs=None):
    """Put the examples into other batches in each epoch, the same on all hosts."""
    mine = np.random.default_rng(epoch).permutation(whole[VALID:].ravel())
    train.batches = mine.reshape(-1, size)[:, rank::world]  # each host has its own
    train.ahead.clear()


size, full = problem.BATCH, problem.EXAMPLES // problem.BATCH
whole = problem.order(0)[: full * size].reshape(full, size)
train, valid = Mine(whole[VALID:, rank::world]), Mine(whole[:VALID, rank::world])
how = {"epochs": EPOCHS, "verbose": 2 * (rank == 0), "validation_data": valid}
# Add yours. They run on each rank: a path that one writes needs the rank in its name.
callbacks = [keras.callbacks.LambdaCallback(on_epoch_begin=mixed)]
how |= {"shuffle": False, "callbacks": callbacks}
one_file.fit(model, [train], gather, rank, state, **how)
checkpoint.save("checkpoint.npz", EPOCHS * (full - VALID), [], state, rank)
