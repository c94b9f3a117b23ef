"""Fixtures that several tests use."""

import notebook_factory
import pytest


@pytest.fixture
def house(tmp_path):
    """The root of a small repository with one chapter that keeps every rule."""
    root = tmp_path / "house"
    root.mkdir()
    return notebook_factory.make_house(root)
