"""Train on several hosts with JAX: one process for each host, with all its GPUs.

Change `problem.py`, copy the folder to each host, put the first host's address and the
number of hosts into `start_jax.sh`, and run `bash start_jax.sh 0 jax_worker.py` on the
first, `bash start_jax.sh 1 jax_worker.py` on the second. Then `python result.py`.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras

keras.distribution.initialize()  # first of all; it waits for the others
parallel = keras.distribution.DataParallel(auto_shard_dataset=False)
keras.distribution.set_distribution(parallel)
import problem

rank, world = jax.process_index(), jax.process_count()
model, optimizer, state = problem.network()
model.compile(optimizer, problem.loss)


def train_step(step):
    """Take a step; the loss of the whole batch: XLA adds up over all."""
    x, y = problem.examples(problem.rows(step, rank, world))
    log = model.fit(x, y, batch_size=len(x), shuffle=False, verbose=0)
    return log.history["loss"][0]


if __name__ == "__main__":
    losses = [round(train_step(step), 3) for step in range(problem.STEPS)]
    print([world, losses])
