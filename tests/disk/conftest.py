"""Disks to test, one for every mechanism."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from disk.suite import KERNELS, AsNobody, LocalWorld, World, local_world, memory_world, open_descriptors
from disk.suite import as_nobody as run_as_nobody
from surehold.disk.local import LocalDisk
from waiting import wait_until


@pytest.fixture(params=["memory", *KERNELS])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "memory":
        yield memory_world()
        return
    yield from _checked(local_world(tmp_path, KERNELS[request.param]))


@pytest.fixture(params=list(KERNELS))
def local(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalWorld]:
    yield from _checked(local_world(tmp_path, KERNELS[request.param]))


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[LocalWorld]:
    """One disk with every mechanism, for tests that do not depend on them."""
    yield from _checked(local_world(tmp_path, KERNELS["local"]))


def _checked(world: LocalWorld) -> Iterator[LocalWorld]:
    gc.collect()  # disks that earlier tests forgot to close
    before = open_descriptors()
    yield world
    wait_until(lambda: open_descriptors() <= before, "a descriptor was left open")  # some are closed by another thread
    assert isinstance(world.disk, LocalDisk)
    world.disk.close()


@pytest.fixture
def as_nobody(tmp_path: Path) -> AsNobody:
    """Let an unprivileged child process reach the temporary directory."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    for directory in (tmp_path, *tmp_path.parents):
        if directory.owner() == "root" and directory.name.startswith(("pytest", "test_", "popen")):
            directory.chmod(0o755)
    return run_as_nobody
