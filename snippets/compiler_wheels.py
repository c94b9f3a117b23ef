import importlib.metadata
import pathlib
import sys

# XLA's compiler for NVIDIA GPUs comes in two packages, and must be of JAX's version.
# JAX before 0.10 can't compile for a card that is not there: a newer one comes along.
COMPILER_JAX = "0.10.2"


def compiler_wheels():
    """Where this Python's compiler for NVIDIA GPUs lies, and what it is made of.

    Returns:
        A folder of its own, so that no other process sees it, and requirements to
        install there without their dependencies.
    """
    names, version = ["jax-cuda12-plugin", "jax-cuda12-pjrt"], COMPILER_JAX
    found = importlib.metadata.version("jax")
    if tuple(map(int, found.split(".")[:2])) >= (0, 10):
        version = found
    else:
        names += ["jax", "jaxlib"]
    folder = pathlib.Path(sys.prefix, "share", f"gpu-compiler-{version}")
    return folder, [f"{name}=={version}" for name in names]
