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
        if getattr(variable.value, "is_fully_replicated", True):  # else a part each
            value = keras.ops.convert_to_numpy(variable)
            checksum = zlib.crc32(value.tobytes(), checksum)
    steps, sums = zip(*gather([step, checksum % 2**31]))  # it fits into an int32
    if len(set(steps)) > 1 or len(set(sums)) > 1:
        raise RuntimeError(f"the ranks disagree: steps {[*steps]}, checksums {[*sums]}")


def check(rank, world, device, optimizer=None):
    """Say who works where; refuse what a launch that went wrong would train."""
    print(f"rank {rank} of {world} on {device}", flush=True)
    expected = os.environ.get("EXPECTED_WORLD") or os.environ.get("SLURM_NTASKS")
    if str(world) != expected:  # a launcher that went wrong can't say it
        raise RuntimeError(f"the world is {world}, but EXPECTED_WORLD is {expected}")
    if "SLURM_GPUS_ON_NODE" in os.environ and device == "cpu":
        raise RuntimeError("Slurm gave this job GPUs, and the engine sees none")
    if problem.SHARDED and keras.backend.backend() != "jax":
        raise RuntimeError("SHARDED is for JAX: here each rank holds the whole state")
    if getattr(getattr(optimizer, "inner_optimizer", optimizer), "use_ema", False):
        raise RuntimeError("use_ema: the loops would not use the averages as fit does")
    half = keras.config.dtype_policy().compute_dtype == "float16"
    if half and not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        raise RuntimeError("mixed_float16: return a LossScaleOptimizer from network")


def train(train_step, gather, rank, state, path="checkpoint.npz", settle=lambda: None):
    """Train to the last step, or until there is a file `stop`; the losses.

    `settle` is what all ranks do before a save.
    """
    step, losses = checkpoint.load(path, state)
    agree(gather, step, state)
    stop, here = False, Path("stop")
    while step < problem.STEPS and not stop:
        losses.append(train_step(step))
        step += 1
        if step % problem.LOOK_EVERY == 0:  # rank 0 looks for all, and reports
            stop = any(seen for (seen,) in gather([int(rank == 0 and here.exists())]))
            if rank == 0:
                print(f"step {step}: loss {float(losses[-1]):.4g}", flush=True)
        if step % problem.SAVE_EVERY == 0 or step == problem.STEPS or stop:
            losses = [float(loss) for loss in losses]
            settle()
            agree(gather, step, state)
            checkpoint.save(path, step, losses, state, rank)
    gather([0])  # nobody leaves before the file is there
    return losses
