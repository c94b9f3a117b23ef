"""Is XLA on in my Keras model, and what switches it off?

Use: `print(report(model))` after `compile`; `blockers(model)` names the layers. On
PyTorch the compiler is `torch.compile`.
It does not know `tf.function` or `jax.jit` in your own code, TensorFlow's
autoclustering (`set_jit`), or whether compiling helps. It was not tried on a GPU.
"""

import os
import platform

import keras


def blockers(model):
    """Paths of all layers, at any depth, that do not support compiling.

    Keras asks the same layers: `model_supports_jit` in keras/src/trainers/trainer.py.
    """
    found, seen, waiting = [], set(), [(model.name, model)]
    while waiting:
        path, layer = waiting.pop()
        if id(layer) not in seen:
            seen.add(id(layer))
            found += [] if layer.supports_jit else [path]
            waiting += [(f"{path}/{part.name}", part) for part in layer._layers[::-1]]
    return found


def reasons_against(model, jit_compile="auto", run_eagerly=False):
    """Why a model that `compile` is given with these arguments is not compiled."""
    engine, auto = keras.backend.backend(), jit_compile == "auto"
    given = {"run_eagerly=True": run_eagerly, "jit_compile=False": not jit_compile}
    reasons = [reason for reason, holds in given.items() if holds]
    reasons += [f"{path} does not support it" for path in blockers(model)]
    if engine == "tensorflow":
        import tensorflow as tf
        from tensorflow.python.framework.config import is_op_determinism_enabled

        kinds = {device.device_type for device in tf.config.list_physical_devices()}
        arm = platform.system() == "Darwin" and "arm" in platform.processor().lower()
        checks = {
            '"auto" is off where only a CPU is listed': auto and kinds <= {"CPU"},
            '"auto" is off under a strategy': auto and model._distribute_strategy,
            "Keras compiles nothing for a Mac's GPU": arm and "GPU" in kinds,
            "enable_op_determinism was called": is_op_determinism_enabled(),
            "run_functions_eagerly was called": tf.config.functions_run_eagerly(),
        }
    elif engine == "jax":
        import jax

        checks = {"jax_disable_jit is set": jax.config.jax_disable_jit}
    elif engine == "torch":
        names = ("TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE")
        checks = {f"{name}=1 is set": os.environ.get(name) == "1" for name in names}
        checks['"auto" is off on PyTorch'] = auto
    else:
        checks = {f"{engine} does not train": True}
    return reasons + [reason for reason, holds in checks.items() if holds]


def report(model):
    """One line: whether the model, as it is compiled, is on, or why not."""
    if not model.compiled:
        on, reasons = True, reasons_against(model)
    else:
        on, eager = model.jit_compile, model.run_eagerly
        eager = eager and keras.backend.backend() != "torch"  # which does not ask it
        reasons = reasons_against(model, on or "auto", eager)
        if on:  # a flag that fell after compile is not asked any more
            reasons = [r for r in reasons if not r.startswith(tuple(blockers(model)))]
    told = ["compile was told so, or a machine without it wrote the file"]
    return "on" if on and not reasons else "off: " + "; ".join(reasons or told)
