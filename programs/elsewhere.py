"""Take a trained Keras model elsewhere: to a CPU in float32, or to a file for JAX.

Use: `in_float32(model)` after loading; `write_for_jax(model, x[:4], "model.npz")`.
It does not know a cast to 16 bits in code of your own; of the data's sizes the file for
JAX leaves only the rows open. It was not tried on a GPU. The table is that of
`in_float32`.
"""

import inspect

import keras
import numpy as np


def in_16_bits(model):
    """All layers, at any depth, that compute in float16 or bfloat16."""
    return [layer for layer in model._flatten_layers() if "16" in layer.compute_dtype]


def in_float32(model):
    """Let a model in mixed precision predict in float32, in place, and return it.

    A file keeps it, but a subclassed model's constructor makes its layers anew: call
    this after each load.

    Raises:
        ValueError: a layer that this cannot bring to float32; nothing is changed then.
    """
    layers = model._flatten_layers()
    for layer in layers:
        if why := _stays_in_16_bits(layer):
            raise ValueError(
                f"{layer.path or layer.name} {why}. Make the model anew under the "
                "policy float32, and copy the weights with set_weights."
            )
    for layer in in_16_bits(model):
        layer.dtype_policy = "float32"
        if isinstance(layer, keras.layers.Normalization) and layer.built:
            layer.finalize_state()  # it holds constants in the old type
            if layer.input_mean is not None:
                layer.build_from_config(layer.get_build_config())
    for layer in layers:  # a model casts its inputs to their type
        if isinstance(layer, keras.layers.InputLayer) and "float16" in layer.dtype:
            layer._dtype = "float32"
        for tensor in getattr(layer, "inputs", None) or []:
            tensor._dtype = "float32" if "float16" in tensor.dtype else tensor.dtype
    model.train_function = model.test_function = model.predict_function = None
    return model


def _stays_in_16_bits(layer):
    """Why a layer would compute in 16 bits under another policy, too; or None."""
    half = "16" in layer.compute_dtype
    if half and layer.dtype_policy.quantization_mode:
        return "is quantised"
    if half and not layer._layers and any("16" in w.dtype for w in layer.weights):
        return "stores its weights in 16 bits"
    for name, value in vars(layer).items():
        constant = isinstance(value, np.ndarray) or keras.ops.is_tensor(value)
        again = isinstance(layer, keras.layers.Normalization)
        if constant and "float16" in str(value.dtype) and not again:
            return f"holds {name} in 16 bits"
    for part in getattr(layer, "operations", []):
        kind = str(getattr(part, "dtype", ""))
        if "float16" in kind and not isinstance(part, keras.Layer):
            return f"has a cast to {kind} between its layers"
    return None


def write_for_jax(model, sample, path, platforms=("cpu", "cuda")):
    """Write what a model predicts, as a program and its weights, for JAX alone.

        from jax import export, jit
        file = np.load("model.npz")  # in a process without Keras and your classes
        program = export.deserialize(bytearray(file["program"]))
        weights = [file[name] for name in file.files[1:]]
        predictions = jit(program.call)(weights, x)  # any number of rows

    Args:
        model: a built model, in a process with `KERAS_BACKEND=jax`.
        sample: two rows or more of what `predict` takes: an array, a list, a dict.
        path: the file, which ends in `.npz`.
        platforms: JAX's names of the devices it is for, present here or not.

    Raises:
        ValueError: another engine, no weights, a model that JAX cannot write down, or
            a program whose predictions are not the model's.
    """
    if keras.backend.backend() != "jax":
        raise ValueError("Load the model in a process with KERAS_BACKEND=jax.")
    if not model.built:
        raise ValueError(f"{model.name} has no weights yet: call it on data once.")
    import jax
    from jax import export

    split = len(model.trainable_variables)
    variables = model.trainable_variables + model.non_trainable_variables
    here = [np.asarray(variable) for variable in variables]
    wide = [w.astype("float32") if w.dtype.kind == "V" else w for w in here]  # bfloat16
    asks = "training" in inspect.signature(model.call).parameters
    off = {"training": False} if asks else {}

    def predict(weights, data):
        own = [jax.numpy.asarray(w, old.dtype) for w, old in zip(weights, here)]
        return model.stateless_call(own[:split], own[split:], data, **off)[0]

    def typed(array, *rows):
        kind = jax.dtypes.canonicalize_dtype(array.dtype)
        return jax.ShapeDtypeStruct((*rows, *array.shape[len(rows) :]), kind)

    try:
        sample = jax.tree.map(np.asarray, sample)
        (rows,) = export.symbolic_shape("rows")
        data = jax.tree.map(lambda array: typed(array, rows), sample)
        like = [typed(array) for array in wide]
        written = export.export(jax.jit(predict), platforms=list(platforms))(like, data)
        program = written.serialize()
        read = jax.jit(export.deserialize(program).call)
        for part in (sample, jax.tree.map(lambda array: array[:1], sample)):
            ours, its = read(wide, part), model.predict_on_batch(part)
            for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(its)):
                near = (0.01 if in_16_bits(model) else 1e-4) * abs(other).max()
                np.testing.assert_allclose(one, other, rtol=0, atol=near)
    except Exception as error:
        short = " ".join(str(error).split())[:300]
        raise ValueError(f"{model.name} can't be written for JAX: {short}") from error
    weights = {f"w{number}": array for number, array in enumerate(wide)}
    np.savez(path, program=np.frombuffer(program, "uint8"), **weights)
