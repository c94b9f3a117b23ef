"""A process for a backend, its device, and the precision of its products."""

import multiprocessing
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor

from tools.machine import processor

ACCELERATORS = ("gpu", "xpu", "mps", "tpu")
# The reader's own settings, except those that say on which of the devices.
PERSONAL = re.compile(
    "(?!.*VISIBLE_DEVICES|.*PLATFORM|.*TORCH_DEVICE)(CUBLAS|CUDNN|DNNL|JAX|KERAS|KMP"
    "|MKL|OMP|ONEDNN|TF2?|PYTORCH|TORCH|TORCHINDUCTOR|XLA)_|CUDA_LAUNCH_|NVIDIA_TF32_"
)


def processes(
    variables: dict[str, str], calls: int | None = None
) -> ProcessPoolExecutor:
    """A pool of one process, which imports its engine with these variables.

    Args:
        variables: what is set there; the reader's own settings stay out.
        calls: after how many there is a new process.
    """
    return ProcessPoolExecutor(
        max_workers=1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start,
        initargs=(variables,),
        max_tasks_per_child=calls,
    )


def start(variables: dict[str, str]) -> None:
    """Set the variables of this process before it imports an engine."""
    for name in filter(PERSONAL.match, list(os.environ)):
        del os.environ[name]
    os.environ["KERAS_HOME"] = os.devnull  # so no keras.json is read
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ.update(variables)
    sys.path[:0] = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))


def device_of(backend: str) -> tuple[dict[str, str], bool]:
    """The device that a backend computes on.

    Returns:
        Its kind and name, and whether it has TF32: an NVIDIA GPU has it from compute
        capability 8.0 on.
    """
    name = capability = ""
    if backend == "jax":
        import jax

        first = jax.devices()[0]
        kind, name = first.platform, first.device_kind
        capability = getattr(first, "compute_capability", "")
    elif backend == "torch":
        import torch
        from keras.src.backend.torch.core import get_device

        kind = get_device().partition(":")[0].replace("cuda", "gpu")
        if kind == "gpu":
            name = torch.cuda.get_device_name()
            if torch.version.cuda:
                capability = "{}.{}".format(*torch.cuda.get_device_capability())
    else:
        import tensorflow as tf

        devices = tf.config.list_physical_devices("GPU")
        kind = "gpu" if devices else "cpu"
        if devices:
            details = tf.config.experimental.get_device_details(devices[0])
            name = details.get("device_name", "")
            capability = ".".join(map(str, details.get("compute_capability", ())))
    if kind not in ACCELERATORS:
        cpu = processor()
        return {"kind": "cpu", "name": f"{cpu['name']}, {cpu['cores']} cores"}, False
    major = capability.partition(".")[0]  # of an AMD GPU it is no number
    return {"kind": kind, "name": name or kind}, major.isdigit() and int(major) >= 8


def use_precision(backend: str, dtype: str) -> None:
    """Let a backend compute products of float32 numbers as "tf32", or else exactly.

    The defaults differ: where there is TF32, TensorFlow and JAX take it, and PyTorch
    takes it in convolutions alone.
    """
    fast = dtype == "tf32"
    if backend == "jax":
        import jax

        # With "tensorfloat32", another name of "high", XLA's own kernels take none.
        precision = "default" if fast else "highest"
        jax.config.update("jax_default_matmul_precision", precision)
    elif backend == "torch":
        import torch

        torch.set_float32_matmul_precision("high" if fast else "highest")
        torch.backends.cudnn.allow_tf32 = fast
    else:
        import tensorflow as tf

        tf.config.experimental.enable_tensor_float_32_execution(fast)
