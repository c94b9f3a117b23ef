"""Train on several hosts with TensorFlow: a process for each GPU, or for each host.

Change `problem.py`, put the folder where all hosts see it, put all addresses into
`start_tensorflow.sh`, and run `bash start_tensorflow.sh 0 tf_worker.py` on the first
host, with 1 in place of 0 on the second. Then `python result.py`.
"""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
local = int(os.environ.get("SLURM_LOCALID", 0)) % max(len(gpus), 1)
tf.config.set_visible_devices(gpus[local : local + 1], "GPU")
by = tf.distribute.experimental
known = by.CommunicationImplementation
options = by.CommunicationOptions(implementation=known.NCCL if gpus else known.RING)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

import problem

with strategy.scope():
    model, optimizer, state = problem.network()
rank, world = strategy.cluster_resolver.task_id or 0, strategy.num_replicas_in_sync
layers = [layer for layer in model._flatten_layers() if layer.trainable]
alone = [x.name for x in layers if getattr(x, "synchronized", True) is False]
limits = "clipnorm", "global_clipnorm", "clipvalue", "dynamic_scale"
alone += [name for name in limits if getattr(optimizer, name, None) is not None]
if alone:
    raise SystemExit(f"{alone}: each worker would do this by itself (chapter 13).")


def replica_step(x, y):
    """Take a step with a worker's part; the all-reduce is in `apply_gradients`."""
    with tf.GradientTape() as tape:
        each = problem.loss(y, model(x, training=True))
        loss = (tf.reduce_mean(each) + sum(model.losses)) / world
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def all_replicas(x, y):
    """The loss of the whole batch, after a step."""
    return strategy.reduce("SUM", strategy.run(replica_step, (x, y)), axis=None)


def train_step(step):
    """Take a step; the loss of the whole batch."""
    arrays = problem.batch(step, rank, world)
    return all_replicas(*keras.tree.map_structure(tf.constant, arrays))


if __name__ == "__main__":
    steps = range(min(problem.STEPS, 12))  # a trial
    losses = [round(float(train_step(step)), 3) for step in steps]
    print([world, losses])
