"""What every disk does, a disk does too whose files are open in an editor that saves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from disk import test_suite
from disk.editors import Editor
from disk.suite import KERNELS, World, local_world
from surehold.disk.editor.disk import EditorDisk

globals().update({name: test for name, test in vars(test_suite).items() if name.startswith("test_")})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = local_world(tmp_path, KERNELS["local"])
    made.disk = EditorDisk(made.disk, Editor(saves=True))
    yield made
    made.disk.close()
