"""Keep `fit` on several hosts, with epochs, callbacks and validation; JAX.

Run `bash start_jax.sh 0 fit_jax.py` and, on the second host, with 1 in place of 0.
"""

from jax_worker import gather, rank, state, world  # first: it connects

# isort: split
import checkpoint
import keras
import one_file
import problem
from two_jax import model

EPOCHS, VALID = 3, 1  # VALID: how many batches are kept for validation


class Mine(keras.utils.PyDataset):
    """This host's part of each batch; threads read ahead, so it may stay in files."""

    def __init__(self, batches):
        super().__init__(workers=4)
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, step):
        return problem.examples(self.batches[step])


size, full = problem.BATCH, problem.EXAMPLES // problem.BATCH
batches = problem.order(0)[: full * size].reshape(full, size)
mine = batches[:, rank::world]  # each host has its own examples, and all as many
how = {"epochs": EPOCHS, "verbose": 2 * (rank == 0)}
# Your callbacks run on each rank: a path that one writes needs the rank in its name.
how |= {"validation_data": Mine(mine[:VALID]), "callbacks": []}
one_file.fit(model, [Mine(mine[VALID:])], gather, rank, state, **how)
checkpoint.save("checkpoint.npz", EPOCHS * (full - VALID), [], state, rank)
