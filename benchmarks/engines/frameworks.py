"""What the suite asks of TensorFlow, JAX and PyTorch, in the same words for each.

Each is imported when its class is made, so that one that is missing stops nobody else.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from benchmarks import memory


class Framework:
    """One framework on its default device.

    Attributes:
        version: of the framework.
        kind: "cpu", or what the framework calls its accelerator ("gpu", "xpu", "mps").
    """

    version: str
    kind: str

    def describe(self) -> dict:
        """The accelerator's `name` and, where they are known, `memory_bytes` and
        `capability`; empty on a CPU.
        """
        raise NotImplementedError

    def tensor(self, array: np.ndarray, dtype: str):
        """Put an array on the device, as numbers of a type such as "bfloat16"."""
        raise NotImplementedError

    def copy_in(self, array: np.ndarray, pinned: bool) -> Callable:
        """Make a function that copies the array from the host's memory to the device.

        Pinned memory is memory that the host will not move, which the device can read
        by itself; LookupError where the framework offers none.
        """
        raise NotImplementedError

    def copy_out(self, tensor, pinned: bool) -> Callable:
        """Make a function that copies the tensor to the host's memory."""
        raise NotImplementedError

    def transform(self, function: Callable, mode: str) -> Callable:
        """Make a function run "eager", as a "graph" or "compiled"."""
        raise NotImplementedError

    def use_precision(self, kind: str) -> None:
        """Let products of float32 matrices be "float32" or "tf32"."""
        raise NotImplementedError

    def reset_peak(self) -> None:
        """Forget the highest use of memory so far."""
        memory.reset_peak()

    def peak_bytes(self) -> int | None:
        """The highest use of the device's memory since `reset_peak`, in bytes.

        On a CPU it is the resident memory of the whole process, framework and all.
        """
        return memory.peak_bytes()


class TensorFlow(Framework):
    """TensorFlow."""

    def __init__(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf

        self.tf, self.version = tf, tf.__version__
        tf.get_logger().setLevel("ERROR")
        self.gpus = tf.config.list_physical_devices("GPU")
        self.kind = "gpu" if self.gpus else "cpu"

    def describe(self) -> dict:
        """See Framework."""
        if not self.gpus:
            return {}
        details = self.tf.config.experimental.get_device_details(self.gpus[0])
        capability = details.get("compute_capability")
        return {
            "name": details.get("device_name", "GPU"),
            **({"capability": ".".join(map(str, capability))} if capability else {}),
        }

    def tensor(self, array, dtype):
        """See Framework."""
        return self.tf.cast(self.tf.constant(array), dtype)

    def copy_in(self, array, pinned):
        """See Framework."""
        if pinned:
            raise LookupError("TensorFlow offers no pinned memory to Python")
        tf = self.tf
        with tf.device("CPU:0"):
            source = tf.identity(tf.constant(array))

        def copy():
            with tf.device("GPU:0"):
                return tf.identity(source)

        return copy

    def copy_out(self, tensor, pinned):
        """See Framework."""
        if pinned:
            raise LookupError("TensorFlow offers no pinned memory to Python")
        tf = self.tf

        def copy():
            with tf.device("CPU:0"):
                return tf.identity(tensor).numpy()

        return copy

    def transform(self, function, mode):
        """See Framework."""
        if mode == "eager":
            return function
        return self.tf.function(function, jit_compile=mode == "compiled")

    def use_precision(self, kind):
        """See Framework."""
        self.tf.config.experimental.enable_tensor_float_32_execution(kind == "tf32")

    def reset_peak(self):
        """See Framework."""
        super().reset_peak()
        if self.gpus:
            self.tf.config.experimental.reset_memory_stats("GPU:0")

    def peak_bytes(self):
        """See Framework."""
        if self.gpus:
            return self.tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return super().peak_bytes()


class Jax(Framework):
    """JAX. Its peak of a GPU's memory can't be reset: one process per measurement."""

    def __init__(self):
        import jax

        self.jax, self.version = jax, jax.__version__
        self.device = jax.devices()[0]
        self.kind = self.device.platform

    def describe(self) -> dict:
        """See Framework."""
        if self.kind == "cpu":
            return {}
        found = {"name": self.device.device_kind}
        capability = getattr(self.device, "compute_capability", None)
        return {**found, **({"capability": str(capability)} if capability else {})}

    def tensor(self, array, dtype):
        """See Framework."""
        return self.jax.numpy.asarray(array, dtype=dtype)

    def _host(self, kind: str):
        return self.jax.sharding.SingleDeviceSharding(self.device, memory_kind=kind)

    def copy_in(self, array, pinned):
        """See Framework."""
        put = self.jax.device_put
        source = put(array, self._host("pinned_host")) if pinned else array
        there = self._host("device")
        return lambda: put(source, there)

    def copy_out(self, tensor, pinned):
        """See Framework."""
        put, cpu = self.jax.device_put, self.jax.devices("cpu")[0]
        there = self._host("pinned_host") if pinned else cpu
        return lambda: put(tensor, there)

    def transform(self, function, mode):
        """See Framework."""
        return self.jax.jit(function) if mode == "compiled" else function

    def use_precision(self, kind):
        """See Framework."""
        name = "tensorfloat32" if kind == "tf32" else "highest"
        self.jax.config.update("jax_default_matmul_precision", name)

    def peak_bytes(self):
        """See Framework."""
        statistics = self.device.memory_stats() if self.kind != "cpu" else None
        if statistics:
            return statistics.get("peak_bytes_in_use")
        return super().peak_bytes() if self.kind == "cpu" else None


class Torch(Framework):
    """PyTorch, on its accelerator if it has one."""

    def __init__(self):
        import torch

        self.torch, self.version = torch, torch.__version__
        self.kind = "cpu"
        for name, there in (
            ("cuda", torch.cuda.is_available),
            ("xpu", lambda: hasattr(torch, "xpu") and torch.xpu.is_available()),
            ("mps", torch.backends.mps.is_available),
        ):
            if there():
                self.kind = {"cuda": "gpu"}.get(name, name)
                self.module = getattr(torch, name)
                break
        self.device = torch.device({"gpu": "cuda"}.get(self.kind, self.kind))

    def describe(self) -> dict:
        """See Framework."""
        if self.kind not in ("gpu", "xpu"):
            return {} if self.kind == "cpu" else {"name": "Apple GPU"}
        properties = self.module.get_device_properties(0)
        found = {"name": properties.name, "memory_bytes": properties.total_memory}
        if hasattr(properties, "major"):
            found["capability"] = f"{properties.major}.{properties.minor}"
        return found

    def tensor(self, array, dtype):
        """See Framework."""
        tensor = self.torch.from_numpy(array).to(self.device)
        return tensor.to(getattr(self.torch, dtype))

    def copy_in(self, array, pinned):
        """See Framework."""
        source = self.torch.from_numpy(array)
        source = source.pin_memory() if pinned else source
        return lambda: source.to(self.device, non_blocking=pinned)

    def copy_out(self, tensor, pinned):
        """See Framework."""
        if not pinned:
            return tensor.cpu
        there = self.torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)

        def copy():
            there.copy_(tensor, non_blocking=True)
            return tensor  # waiting for it waits for the copy, which is in its queue

        return copy

    def transform(self, function, mode):
        """See Framework."""
        return self.torch.compile(function) if mode == "compiled" else function

    def use_precision(self, kind):
        """See Framework."""
        name = "high" if kind == "tf32" else "highest"
        self.torch.set_float32_matmul_precision(name)
        self.torch.backends.cudnn.allow_tf32 = kind == "tf32"

    def reset_peak(self):
        """See Framework."""
        super().reset_peak()
        if self.kind in ("gpu", "xpu"):
            self.module.reset_peak_memory_stats()

    def peak_bytes(self):
        """See Framework."""
        if self.kind in ("gpu", "xpu"):
            return self.module.max_memory_allocated()
        return super().peak_bytes() if self.kind == "cpu" else None


def framework(engine: str) -> Framework:
    """The framework below an engine such as "keras-jax".

    Raises:
        ImportError: it is not installed.
    """
    name = engine.removeprefix("keras-")
    return {"tensorflow": TensorFlow, "jax": Jax, "torch": Torch}[name]()
