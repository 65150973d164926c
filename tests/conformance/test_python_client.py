"""The official Python client lives an edit's life with the real server; `make conformance` does it with every client."""

from pathlib import Path

import pytest

from conformance.lifecycle import STEPS, Step
from conformance.python_client import over_stdio
from conformance.servers import new_place
from spec.marks import requirement


@requirement(
    "files:stale:lifecycle",
    "front:mcp:stdio",
    "front:mcp:eras",
    "front:mcp:error_planes",
    "host:arguments:unknown_top_level",
)
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_reads_edits_is_refused_when_stale_and_edits_again(tmp_path: Path, mode: str) -> None:
    assert over_stdio(new_place(tmp_path / "place"), mode) == [Step(name=name, ok=True) for name in STEPS]
