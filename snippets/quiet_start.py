import contextlib
import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Leave room on a GPU for a second process or framework (chapter 5 tells why).
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@contextlib.contextmanager
def quiet_stderr():
    """Discard what C++ code writes to file descriptor 2 inside the block."""
    sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


with quiet_stderr():
    import tensorflow

    tensorflow.config.list_physical_devices()  # the CUDA libraries are loaded here
tensorflow.get_logger().setLevel("ERROR")
