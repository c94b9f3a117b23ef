"""Keep the state of a training in one file, which is always a whole one."""

import os
from pathlib import Path

import keras
import numpy as np


def whole(variable, rank=0):
    """A variable's numbers, for rank 0; all ranks help where each holds a part."""
    value = getattr(variable, "value", variable)
    if not getattr(value, "is_fully_addressable", True):
        from jax.experimental import multihost_utils

        value = multihost_utils.process_allgather(value, tiled=True)
    if rank != 0:
        return None
    value = keras.ops.convert_to_numpy(value)
    # NumPy's files know neither bfloat16 nor float8, and float32 holds both.
    return value.astype("float32") if value.dtype.kind == "V" else value


def save(path, step, losses, state, rank=0):
    """Replace the file; the old one stays until the new is complete. All ranks call.

    A state with NaN or infinity is an error on all of them, and the old file stays.
    """
    for variable in state:
        if not keras.ops.all(keras.ops.isfinite(variable)):
            name = getattr(variable, "path", "an array")
            raise ValueError(f"{name} is not finite; {path} is from before")
    arrays = [whole(variable, rank) for variable in state]  # one after the other
    if rank != 0:
        return
    new = Path(f"{path}.new")
    with new.open("wb") as file:
        np.savez(file, *arrays, step=step, losses=losses)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def load(path, state):
    """Restore the state; how many steps it has seen, and their losses."""
    if not Path(path).exists():
        return 0, []
    with np.load(path) as saved:
        if len(saved) != len(state) + 2:
            raise ValueError(f"{path} is of another model or optimizer. Move it away.")
        for number, variable in enumerate(state):
            variable.assign(saved[f"arr_{number}"])
        return int(saved["step"]), saved["losses"].tolist()
