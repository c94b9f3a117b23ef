"""The engines that are measured: Keras on its backends, PyTorch and JAX alone."""

from __future__ import annotations

# What each is called on the page; behind "keras-" stands Keras's backend.
NAMES = {
    "keras-tensorflow": "Keras on TensorFlow",
    "keras-jax": "Keras on JAX",
    "keras-torch": "Keras on PyTorch",
    "torch": "PyTorch alone",
    "jax": "JAX alone",
}
# The ways in which an engine runs a model; on all of them "compiled" includes fusion.
MODES = {
    "keras-tensorflow": ("eager", "graph", "compiled"),
    "keras-jax": ("eager", "compiled"),
    "keras-torch": ("eager", "compiled"),
    "torch": ("eager", "compiled"),
    "jax": ("compiled",),
}


def usual_mode(engine: str, on_accelerator: bool) -> str:
    """What `compile()` chooses, or what people write where there is no `compile()`.

    Keras 3: TensorFlow compiles with XLA unless the machine has only CPUs, JAX always
    does, PyTorch never (chapter 7).
    """
    if engine == "keras-tensorflow":
        return "compiled" if on_accelerator else "graph"
    return "compiled" if engine.endswith("jax") else "eager"
