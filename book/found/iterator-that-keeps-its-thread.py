import ctypes
import os
import time

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import tensorflow as tf

dataset = tf.data.Dataset.range(100).batch(4).prefetch(2)
iterators = [iter(dataset) for _ in range(300)]
for iterator in iterators:
    next(iterator)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(iterators))  # or the end takes minutes
time.sleep(8)  # the older, the longer: up to 60 s
longest = 0
while iterators and longest < 1:
    start = time.monotonic()
    iterators.pop()
    longest = max(longest, time.monotonic() - start)
assert longest < 1
