import numpy as np
import openvino as ov
from openvino import opset8 as ops

values = ops.parameter([-1, 4], np.float32)
model = ov.Model([ops.relu(values)], [values])
program = ov.Core().compile_model(model, "CPU")
first, second = np.ones((1, 4), "float32"), np.full((1, 4), 2, "float32")
program(first)
program.create_infer_request().infer(second)
assert (first == 1).all()
