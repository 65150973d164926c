import pytest

from dialects.anchored.lines import Lines
from dialects.place import Place
from front.conftest import shell

__all__ = ["shell"]


@pytest.fixture
def lines(place: Place) -> Lines:
    return Lines(place, "file.txt")
