"""A segment of layers of which only the first input is kept for the backward pass.

Use: `Segment([layer, layer])` in place of the layers, `Segment([model])` for a block
with branches; `load_model` needs `custom_objects={"Segment": Segment}`.
It does not know several inputs, nor a mask that leaves it on TensorFlow and JAX.
"""

import keras


class Segment(keras.Sequential):
    """Layers in a row, computed again in the backward pass."""

    autocast = property(lambda self: False, lambda *_: None)  # its layers cast

    def call(self, values, training=None, mask=None):
        """Run the layers; the backward pass runs them once more."""
        run, weights = super().call, self.trainable_variables
        others, moved = self.non_trainable_variables, []  # seeds, running averages
        before = [keras.ops.stop_gradient(v.value) for v in others]

        def forward(x, *given):  # it changes no variable, so it can run twice
            state = [*zip(weights, given), *zip(others, before)]
            with keras.StatelessScope(state, collect_losses=True) as scope:
                old = [scope.get_current_value(v) for v in others]
                y = run(x, training, mask)
                new = [scope.get_current_value(v) for v in others]
            moved[:] = [i for i in range(len(old)) if new[i] is not old[i]]
            return y, [new[i] for i in moved], scope.losses

        y, new, losses = keras.remat(forward)(values, *[v.value for v in weights])
        for i, value in zip(moved, new):
            before[i] = keras.ops.copy(before[i])  # PyTorch overwrites the old one
            others[i].assign(value)
        for loss in losses:
            self.add_loss(loss)
        return y
