"""Keeps these tests together: the frameworks take seconds to import, and one worker does it once."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put them first, in their random order: other workers take work away from the end."""
    items.sort(key=lambda one: _HERE not in one.path.parents)
