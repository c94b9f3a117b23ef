"""Which versions of packages are installed."""

import contextlib
import importlib.metadata
from collections.abc import Iterable

ENGINES = ("tensorflow", "keras", "jax", "torch", "openvino", "numpy")
VARIANTS = {"tensorflow": ("tensorflow", "tensorflow-cpu")}


def versions(names: Iterable[str] = ENGINES) -> dict[str, str]:
    """The versions of packages beside this program, of those that are there.

    Args:
        names: of the packages; the variant of one counts as the package.
    """
    found: dict[str, str] = {}
    for package in names:
        for name in VARIANTS.get(package, (package,)):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                found.setdefault(package, importlib.metadata.version(name))
    return found
