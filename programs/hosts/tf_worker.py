"""The loop on TensorFlow, in a job of Slurm or with a TF_CONFIG of your own."""

import os

import slurm_hosts

if "SLURM_PROCID" in os.environ:
    os.environ["TF_CONFIG"] = slurm_hosts.tf_config()
# isort: split
from two_tensorflow import (
    gpus,
    local,
    optimizer,
    rank,
    state,
    strategy,
    train_step,
    world,
)

# isort: split
import loop
import tensorflow as tf

loop.check(rank, world, f"GPU {local}" if gpus else "cpu", optimizer)


@tf.function
def of_all(numbers):
    """The numbers of all workers, one worker in a row."""
    return strategy.gather(strategy.run(tf.identity, (numbers,)), axis=0)


def gather(numbers):
    """The numbers of every worker."""
    return of_all(tf.constant([numbers], "int64")).numpy().tolist()


if __name__ == "__main__":
    losses = loop.train(train_step, gather, rank, state)
    print(losses[-12:])  # the checkpoint has all
