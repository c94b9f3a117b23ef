"""Train a model that is too large for one card: each card keeps a part of each weight.

Use, on JAX: `keras.distribution.set_distribution(ShardByShape())` before the model is
made, and `refuse_whole(model)` before `fit`, which names large weights that are whole.
All cards share each batch, so their number must divide it, also the last batch.

What decides where a weight is cut is its shape, and one word. A weight of two axes or
more with at least `least` numbers is cut along its longest axis that the cards can
share. But only a weight that has `kernel` in its own name, as Keras names what a layer
multiplies by, is cut along its last axis. The last axis of all others, such as tables
of words or of positions and class tokens, is the features: if these are cut, JAX's
attention may refuse the step.
It does not know what else needs memory (`plan.py` does), how fast the links are, nor
the rules that a model brings. On several hosts chapter 14's files save and predict.
"""

import math

import keras
from keras import distribution

LEAST = 2**16  # numbers: a smaller part would be a message that is mostly waiting


class ShardByShape(distribution.ModelParallel):
    """Each card keeps a part of each large weight, and gets its part of each batch.

    Args:
        cards: names of devices, as `keras.distribution.list_devices` gives them; all of
            them by default.
        least: how many numbers a weight has that is cut; smaller ones stay whole.
        **options: as for `keras.distribution.ModelParallel`.
    """

    def __init__(self, cards=None, least=LEAST, **options):
        if keras.backend.backend() != "jax":
            raise ValueError("ShardByShape is for JAX. Fix: set KERAS_BACKEND=jax.")
        cards = list(distribution.list_devices() if cards is None else cards)
        mesh = distribution.DeviceMesh((len(cards),), ["batch"], cards)
        super().__init__(layout_map=distribution.LayoutMap(mesh), **options)
        self.least = least

    def get_variable_layout(self, variable):
        """Where a weight is cut: along one axis, or not."""
        if getattr(variable, "_layout", None) is not None:
            return variable._layout  # the optimizer's numbers lie like their weight
        cards, shape = self.device_mesh.devices.size, variable.shape
        axes = range(len(shape) - ("kernel" not in variable.name))
        large = len(shape) > 1 and math.prod(shape) >= self.least
        fits = [axis for axis in axes if large and shape[axis] % cards == 0]
        cut = [None] * len(shape)
        if fits:
            cut[max(fits, key=shape.__getitem__)] = self.batch_dim_name
        return distribution.TensorLayout(cut, self.device_mesh)


def refuse_whole(model, large=LEAST):
    """Raise an error that names the large weights of which each card holds all.

    Args:
        model: a Keras model that has its weights.
        large: how many numbers a large weight has, or more. It has two axes or more.

    Raises:
        ValueError: there are such weights; or none at all, as the model is not built.
    """
    if not model.weights:
        raise ValueError("The model has no weights yet. Fix: call it on a batch.")
    found = [weight for weight in model.weights if len(weight.shape) > 1]
    found = [weight for weight in found if math.prod(weight.shape) >= large]
    whole = [weight for weight in found if weight.value.sharding.is_fully_replicated]
    if whole:
        names = ", ".join(f"{weight.path} {tuple(weight.shape)}" for weight in whole)
        number = f"{len(whole)} of {len(found)} large weights"
        raise ValueError(f"{number} are whole on each card: {names}")
