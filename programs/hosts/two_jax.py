"""Train on several hosts with JAX: one process for each host, with all its GPUs.

Change `problem.py`, put the folder where all hosts see it, put the first host's address
and the number of hosts into `start_jax.sh`, and run `bash start_jax.sh 0 jax_worker.py`
on the first, `bash start_jax.sh 1 jax_worker.py` on the second. Then
`python result.py`.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import keras

keras.distribution.initialize()  # first of all; it waits for the others
import problem


class Sharded(keras.distribution.DataParallel):
    """Each card has its part of the batch, and of each weight that can be divided."""

    def get_variable_layout(self, variable):
        """Divide the longest axis of which each card can have as much."""
        whole = super().get_variable_layout(variable)
        cards, shape = self.device_mesh.devices.size, variable.shape
        # The last axis is cut in a kernel only: see chapter 18, "What breaks".
        axes = range(len(shape) - ("kernel" not in variable.name))
        axes = [axis for axis in axes if shape[axis] % cards == 0]
        if whole is variable._layout or not axes or "float" not in variable.dtype:
            return whole
        names = [None] * len(shape)
        names[max(axes, key=shape.__getitem__)] = self.batch_dim_name
        return keras.distribution.TensorLayout(names, self.device_mesh)


kind = Sharded if problem.SHARDED else keras.distribution.DataParallel
parallel = kind(auto_shard_dataset=False)
keras.distribution.set_distribution(parallel)

rank, world = jax.process_index(), jax.process_count()
model, optimizer, state = problem.network()


def whole_loss(x, y, outputs, *unused, **also):
    """The mean over the whole batch, as on the other engines, and all penalties."""
    return keras.ops.mean(problem.loss(y, outputs)) + sum(model.losses)


model.compute_loss = whole_loss
model.compile(optimizer)


def train_step(step):
    """Take a step; the loss of the whole batch: XLA adds up over all."""
    x, y = problem.batch(step, rank, world)
    size = problem.BATCH // world
    log = model.fit(x, y, batch_size=size, shuffle=False, verbose=0)
    return log.history["loss"][0]


if __name__ == "__main__":
    steps = range(min(problem.STEPS, 12))  # a trial
    losses = [round(train_step(step), 3) for step in steps]
    print([world, losses])
