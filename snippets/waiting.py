import sys
from numbers import Number


def wait_for(result):
    """Wait until a device has finished a tensor or array, or a list or dict of them."""
    framework = type(result).__module__.partition(".")[0]
    library = sys.modules.get(framework)
    if isinstance(result, (list, tuple, dict)) and result:
        for part in result.values() if isinstance(result, dict) else result:
            wait_for(part)
    elif hasattr(result, "block_until_ready"):  # JAX
        result.block_until_ready()
    elif framework == "tensorflow":
        synchronous = library.config.experimental.get_synchronous_execution()
        if "CPU" not in result.device or not synchronous:
            library.test.experimental.sync_devices()
    elif framework == "torch":
        if result.device.type != "cpu":
            library.accelerator.synchronize(result.device)
    elif framework != "numpy" and not isinstance(result, Number):
        raise TypeError(f"cannot wait for {result!r}: return what was computed")
    return result
