from pathlib import Path

import pytest

from capture.desk import RunDesk


@pytest.fixture
def desk(tmp_path: Path) -> RunDesk:
    return RunDesk(tmp_path)
