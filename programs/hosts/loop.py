"""The loop around an engine's steps: resume, agree, save, stop in time."""

import os
import zlib
from pathlib import Path

import checkpoint
import keras
import problem


def agree(gather, step, state):
    """Raise an error on every rank, unless all have the same step and state."""
    checksum = 0
    for variable in state:
        value = keras.ops.convert_to_numpy(variable)
        checksum = zlib.crc32(value.tobytes(), checksum)
    steps, sums = zip(*gather([step, checksum % 2**31]))  # it fits into an int32
    if len(set(steps)) > 1 or len(set(sums)) > 1:
        raise RuntimeError(f"the ranks disagree: steps {[*steps]}, checksums {[*sums]}")


def check(rank, world, device):
    """Say who works where; refuse what a launch that went wrong would train."""
    print(f"rank {rank} of {world} on {device}", flush=True)
    expected = os.environ.get("EXPECTED_WORLD") or os.environ.get("SLURM_NTASKS")
    if str(world) != expected:  # a launcher that went wrong can't say it
        raise RuntimeError(f"the world is {world}, but EXPECTED_WORLD is {expected}")
    if "SLURM_GPUS_ON_NODE" in os.environ and device == "cpu":
        raise RuntimeError("Slurm gave this job GPUs, and the engine sees none")


def train(train_step, gather, rank, state, path="checkpoint.npz"):
    """Train to the last step, or until there is a file `stop`; the losses."""
    step, losses = checkpoint.load(path, state)
    agree(gather, step, state)
    stop = False
    while step < problem.STEPS and not stop:
        losses.append(train_step(step))
        step += 1
        stop = any(seen for (seen,) in gather([int(Path("stop").exists())]))
        if step % problem.SAVE_EVERY == 0 or step == problem.STEPS or stop:
            agree(gather, step, state)
            if rank == 0:
                checkpoint.save(path, step, losses, state)
    gather([0])  # nobody leaves before the file is there
    return losses
