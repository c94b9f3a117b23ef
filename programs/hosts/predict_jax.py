"""Predict on all hosts, if no card can hold the model alone; JAX.

Run `bash start_jax.sh 0 predict_jax.py` and, on the second host, with 1 in place of 0.
It reads `checkpoint.npz` and writes the outputs for all examples: `predictions.npz`.
"""

from two_jax import (
    jax,
    keras,
    model,
    parallel,
    rank,
    state,
    world,
)  # first: it connects

# isort: split
import checkpoint
import numpy as np
import problem
from jax.experimental import multihost_utils


@jax.jit
def outputs_of(trainable, others, x):
    """The model's outputs, computed by all cards together."""
    return model.stateless_call(trainable, others, x, training=False)[0]


def on_cards(part):
    """An array of all hosts, of which this host brings its part."""
    layout = parallel.get_data_layout(part.shape).backend_layout
    return jax.make_array_from_process_local_data(layout, part)


def predict(rows):
    """The outputs for these examples, on every rank; the cards share them out."""
    cards = jax.device_count()
    full = np.resize(rows, -(-len(rows) // cards) * cards)  # some of them again
    x, _ = problem.examples(np.split(full, world)[rank])
    groups = model.trainable_variables, model.non_trainable_variables
    values = [[variable.value for variable in group] for group in groups]
    outputs = outputs_of(*values, keras.tree.map_structure(on_cards, x))
    arrays = multihost_utils.process_allgather(outputs, tiled=True)
    return [array[: len(rows)] for array in keras.tree.flatten(arrays)]


if __name__ == "__main__":
    checkpoint.load("checkpoint.npz", state)
    every = range(0, problem.EXAMPLES, problem.BATCH)
    batches = [np.arange(problem.EXAMPLES)[n : n + problem.BATCH] for n in every]
    outputs = zip(*[predict(rows) for rows in batches])
    if rank == 0:
        arrays = [checkpoint.whole(np.concatenate(parts)) for parts in outputs]
        np.savez("predictions.npz", *arrays)
