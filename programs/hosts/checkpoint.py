"""Keep the state of a training in one file, which is always a whole one."""

import os
from pathlib import Path

import keras
import numpy as np


def whole(variable):
    """A variable's numbers, also if each host of JAX holds a part of them."""
    value = getattr(variable, "value", variable)
    if getattr(value, "is_fully_addressable", True):
        value = keras.ops.convert_to_numpy(variable)
    else:
        from jax.experimental import multihost_utils

        value = multihost_utils.process_allgather(value, tiled=True)
    # NumPy's files know neither bfloat16 nor float8, and float32 holds both.
    return value.astype("float32") if value.dtype.kind == "V" else value


def save(path, step, losses, state, rank=0):
    """Replace the file; the old one stays until the new is complete. All ranks call."""
    arrays = []
    for variable in state:
        value = whole(variable)  # one after the other, to save memory
        if rank == 0:
            arrays.append(value)
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
