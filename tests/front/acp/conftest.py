from pathlib import Path

import pytest

from front.acp.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A workspace of one test."""
    (tmp_path / "root").mkdir()
    return Place(root=tmp_path / "root", state=tmp_path / "state")
