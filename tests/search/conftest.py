"""Workspaces to find things in."""

from pathlib import Path

import pytest

from search.scenes import ENGINES, Scene, make_scene


@pytest.fixture(params=ENGINES)
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A workspace on this machine, searched by either engine."""
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off" if request.param == "python" else "")
    return make_scene(tmp_path)


@pytest.fixture(params=["local", "memory"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    """A workspace on either disk."""
    return make_scene(tmp_path, request.param)


@pytest.fixture
def local(tmp_path: Path) -> Scene:
    return make_scene(tmp_path)
