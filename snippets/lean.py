import pathlib
import tempfile


def lean(*used):
    """A folder for PYTHONPATH that makes processes start faster.

    Keras imports what is installed, also what it does not use. A module of the same
    name, found first, says that it is not there; those that are `used` are spared.
    """
    heavy = {"IPython", "jax", "matplotlib", "pandas", "sklearn", "tensorflow", "torch"}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lean-"))
    for name in heavy - {*used}:
        (folder / f"{name}.py").write_text("raise ImportError")
    return str(folder)
