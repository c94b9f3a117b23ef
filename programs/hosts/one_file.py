"""Checkpoints of `fit`, in one file that is always a whole one; see fit_jax.py."""

import checkpoint
import keras
import loop


class OneFile(keras.callbacks.Callback):
    """Save the whole state after each epoch; all ranks call it, and rank 0 writes."""

    def __init__(self, state, rank=0):
        super().__init__()
        self.state, self.rank = state, rank

    def on_epoch_end(self, epoch, logs=None):
        """Save how many epochs there are, and what they made."""
        checkpoint.save("fit.npz", epoch + 1, [], self.state, self.rank)


def fit(model, data, gather, rank, state, callbacks=(), **how):
    """Go on where the file ends, if all ranks see the same one; what `fit` returns."""
    made, _ = checkpoint.load("fit.npz", state)
    loop.agree(gather, made, state)
    how |= {"initial_epoch": made, "callbacks": [*callbacks, OneFile(state, rank)]}
    log = model.fit(*data, **how)
    gather([0])  # when the file is there
    return log
