"""Keep the state of a training in one file, which is always a whole one."""

import os
from pathlib import Path

import keras
import numpy as np


def save(path, step, losses, state):
    """Replace the file: the old one stays until the new one is complete."""
    arrays = [keras.ops.convert_to_numpy(variable) for variable in state]
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
