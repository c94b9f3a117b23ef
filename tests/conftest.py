"""Fixtures that several tests use."""

import signal

import notebook_factory
import pytest

# A shell starts what runs in the background (`make test &`) deaf to an interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def house(tmp_path):
    """The root of a small repository with one chapter that keeps every rule."""
    root = tmp_path / "house"
    root.mkdir()
    return notebook_factory.make_house(root)


@pytest.fixture
def handed_in(tmp_path):
    """A folder in which a small class has handed in, below `in`."""
    import class_factory  # slow to import

    class_factory.write_all(tmp_path / "in", class_factory.SMALL)
    return tmp_path
