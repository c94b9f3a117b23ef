from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openvino as ov
from openvino import opset8 as ops

values = ops.parameter([1, 1000], np.float32)
kernel = np.ones((1000, 1000), "float32") / 1000
product = values
for _ in range(20):
    product = ops.matmul(product, kernel, False, False)
settings = {"INFERENCE_NUM_THREADS": 1}
program = ov.Core().compile_model(ov.Model([product], [values]), "CPU", settings)


def wrong(number):
    answer = program(np.full((1, 1000), number, "float32"))[0]
    return abs(answer[0, 0] - number) > 0.1


with ThreadPoolExecutor(4) as threads:
    assert not any(threads.map(wrong, range(40)))
