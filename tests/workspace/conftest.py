from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from workspaces import PAIRS, Bench, DiskKind, StoreKind, make_bench


@pytest.fixture(params=PAIRS, ids="+".join)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    store, disk = cast("tuple[StoreKind, DiskKind]", request.param)
    made = make_bench(store, disk, tmp_path)
    yield made
    made.workspace.close()
