import importlib.metadata
import pathlib
import sys

# XLA's compiler for NVIDIA GPUs comes in two packages of JAX's version. It calls
# NVIDIA's assembler, ptxas, which is in a third. JAX before 0.10 can't compile for a
# card that is not there: a newer one comes along.
COMPILER_JAX, PTXAS = "0.10.2", "nvidia-cuda-nvcc-cu12==12.9.86"


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
    folder = pathlib.Path(sys.prefix, "share", f"xla-for-gpus-{version}")
    return folder, [*(f"{name}=={version}" for name in names), PTXAS]
