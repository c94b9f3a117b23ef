import os

os.environ["KERAS_BACKEND"] = "torch"
os.environ["KERAS_TORCH_DEVICE"] = "cpu"
import keras
import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

keras.utils.set_random_seed(0)
words = keras.Input((4,), dtype="int32")
x = keras.layers.Embedding(9, 8, mask_zero=True)(words)
attention = keras.layers.MultiHeadAttention(2, 4)
model = keras.Model(words, attention(x, x))
text = np.array([[1, 2, 3, 0]])  # the last word is padding


def gradients():
    """Of a loss that looks at all four positions."""
    weights = [weight.value for weight in attention.weights]
    return torch.autograd.grad(model(text).square().sum(), weights)


with sdpa_kernel(SDPBackend.MATH):  # PyTorch's plain kernel
    right = gradients()
apart = [float(abs(a - b).max()) for a, b in zip(gradients(), right, strict=True)]
assert max(apart) < 1e-6, apart
