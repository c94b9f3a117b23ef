"""Keep `fit` on several hosts, with epochs, callbacks and validation; JAX.

Run `bash start_jax.sh 0 fit_jax.py` and, on the second host, with 1 in place of 0.
"""

from jax_worker import gather, rank, state, world  # first: it connects

# isort: split
import checkpoint
import one_file
import problem
from two_jax import model

EPOCHS, VALID = 3, 1  # VALID: how many batches are kept for validation
size, full = problem.BATCH, problem.EXAMPLES // problem.BATCH
batches = problem.order(0)[: full * size].reshape(full, size)
mine = batches[:, rank::world]  # each host has its own examples, and all as many
how = {"epochs": EPOCHS, "batch_size": size // world, "verbose": 2 * (rank == 0)}
valid, data = (problem.examples(m.ravel()) for m in (mine[:VALID], mine[VALID:]))
# Your callbacks run on each rank: a path that one writes needs the rank in its name.
how |= {"validation_data": valid, "callbacks": []}
one_file.fit(model, data, gather, rank, state, **how)
checkpoint.save("checkpoint.npz", EPOCHS * (full - VALID), [], state, rank)
