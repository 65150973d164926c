"""Links, roots and spellings: what a path may lead to on a real disk."""

import errno
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from disk.suite import KERNELS, AsNobody, LocalWorld, local_world, open_descriptors
from spec.marks import requirement
from surehold.disk.kernel import Kernel
from surehold.disk.local import LocalDisk
from surehold.errors import InvalidArgument, NotFound, OutsideWorkspace, PermissionDenied, SureholdError

EVERY_KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def reason(world: LocalWorld, path: str) -> tuple[type[SureholdError], str]:
    with pytest.raises(SureholdError) as caught:
        world.target(path)
    assert caught.value.path == path
    return type(caught.value), caught.value.reason


ESCAPE = (OutsideWorkspace, "symlink_escape")
LOOP = (NotFound, "symlink_loop")


@requirement("engine:disk:links_inside", "engine:disk:target")
def test_links_inside_are_followed_to_the_file_itself(local: LocalWorld) -> None:
    local.put("real/deep/file", b"x")
    (local.root / "leaf").symlink_to("real/deep/file")
    (local.root / "dir").symlink_to("real")
    (local.root / "absolute").symlink_to(local.root / "real")
    (local.root / "real/up").symlink_to("../real/deep")
    (local.root / "chain").symlink_to("dir/up")
    for path in ("leaf", "dir/deep/file", "absolute/deep/file", "real/up/file", "chain/file", "dir/../leaf"):
        assert local.target(path).key == "real/deep/file", path


def test_dotdot_after_a_link_means_the_parent_of_the_real_directory(local: LocalWorld) -> None:
    local.put("real/deep/file", b"x")
    local.put("real/beside", b"x")
    (local.root / "link").symlink_to("real/deep")
    assert local.target("link/../beside").key == "real/beside"


@requirement("promise:contained:links")
def test_links_that_lead_out_are_refused(local: LocalWorld) -> None:
    (local.outside / "secret").write_bytes(b"secret")
    (local.root / "leaf").symlink_to(local.outside / "secret")
    (local.root / "dir").symlink_to(local.outside)
    (local.root / "relative").symlink_to("../outside/secret")
    (local.root / "up").symlink_to("..")
    (local.root / "slash").symlink_to("/")
    (local.root / "evil").symlink_to(f"{local.root}-evil/x")
    (local.root / "hop").symlink_to("leaf")
    for path in ("leaf", "dir/secret", "dir", "relative", "up", "up/outside/secret", "slash/etc/passwd", "evil", "hop"):
        assert reason(local, path) == ESCAPE, path


@requirement("promise:contained:links", "promise:contained:devices")
def test_links_into_proc_are_refused(local: LocalWorld) -> None:
    for number, goal in enumerate(("/proc/self/environ", "/proc/self/root", f"/proc/{os.getpid()}/cwd", "/dev/zero")):
        (local.root / str(number)).symlink_to(goal)
        assert reason(local, str(number)) == ESCAPE


@EVERY_KERNEL
def test_magic_links_are_refused_even_below_a_root(kernel: Kernel) -> None:
    with LocalDisk(["/proc"], kernel=kernel) as disk:
        for path in (f"{os.getpid()}/root/etc/passwd", f"{os.getpid()}/cwd", "self/environ"):
            with pytest.raises(OutsideWorkspace) as caught:
                disk.resolve(path)
            assert caught.value.reason == "symlink_escape"


@requirement("engine:bad_input:dangling_link")
def test_a_dangling_link_leads_to_the_missing_file(local: LocalWorld) -> None:
    (local.root / "inside").symlink_to("not/yet")
    (local.root / "outside").symlink_to(local.outside / "not-yet")
    assert local.target("inside").key == "not/yet"
    assert reason(local, "outside") == ESCAPE
    local.apply(local.create("inside", b"x"))
    assert (local.root / "not/yet").read_bytes() == b"x"
    assert (local.root / "inside").is_symlink()
    assert list(local.outside.iterdir()) == []


@requirement("engine:bad_input:looping_link")
def test_loops_end(local: LocalWorld) -> None:
    (local.root / "self").symlink_to("self")
    (local.root / "a").symlink_to("b")
    (local.root / "b").symlink_to("a")
    for path in ("self", "a", "a/x", "self/../x"):
        assert reason(local, path) == LOOP


@requirement("engine:disk:links_inside")
def test_forty_links_are_followed_and_forty_one_are_not(local: LocalWorld) -> None:
    local.put("0", b"x")
    for number in range(1, 42):
        (local.root / str(number)).symlink_to(str(number - 1))
    assert local.target("40").key == "0"
    assert reason(local, "41") == LOOP


def test_a_link_to_a_file_is_not_a_directory(local: LocalWorld) -> None:
    local.put("file", b"x")
    (local.root / "link").symlink_to("file")
    assert reason(local, "link/below") == (NotFound, "not_a_directory")
    assert reason(local, "link/") == (InvalidArgument, "trailing_slash")


def test_a_trailing_slash_names_a_directory(local: LocalWorld) -> None:
    local.put("d/f", b"x")
    (local.root / "link").symlink_to("d")
    assert local.target("d/") == local.target("link/") == local.target("d")
    assert local.target("./") == local.target(".")


@requirement("promise:untouched:symlinks")
def test_an_edit_through_a_link_leaves_the_link(local: LocalWorld) -> None:
    local.put("real", b"old")
    (local.root / "link").symlink_to("real")
    local.apply(local.replace("link", b"new", expected=b"old"))
    assert (str((local.root / "link").readlink()), (local.root / "real").read_bytes()) == ("real", b"new")


@EVERY_KERNEL
def test_a_root_given_through_a_link_is_accepted_in_both_spellings(tmp_path: Path, kernel: Kernel) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "given").symlink_to("real")
    (tmp_path / "real/link").symlink_to(tmp_path / "given/file")
    with LocalDisk([tmp_path / "given"], kernel=kernel) as disk:
        assert disk.roots == (str(tmp_path / "real"),)
        for path in ("file", f"{tmp_path}/given/file", f"{tmp_path}/real/file", "link"):
            assert disk.resolve(path).key == "file"


@requirement("engine:disk:several_roots")
@EVERY_KERNEL
def test_a_second_root_is_named_absolutely(tmp_path: Path, kernel: Kernel) -> None:
    world = local_world(tmp_path, kernel, roots=("one", "two"))
    (tmp_path / "two/file").write_bytes(b"x")
    (world.root / "absolute").symlink_to(tmp_path / "two/file")
    (world.root / "relative").symlink_to("../two")
    (world.root / "up").symlink_to("../../..")
    target = world.target(f"{tmp_path}/two/file")
    assert (target.root, target.parts, target.key) == (f"{tmp_path}/two", ("file",), f"{tmp_path}/two/file")
    assert world.target("absolute") == target
    assert world.target("relative/file") == target
    assert reason(world, "up") == ESCAPE
    assert reason(world, "../two/file") == (OutsideWorkspace, "dotdot")
    assert world.target(f"{tmp_path}/two").key == f"{tmp_path}/two"


def test_a_file_below_two_roots_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "ws/sub").mkdir(parents=True)
    for order in (("ws", "ws/sub"), ("ws/sub", "ws")):
        with LocalDisk([tmp_path / name for name in order]) as disk:
            names = {disk.resolve(path) for path in (f"{tmp_path}/ws/sub/f", f"{tmp_path}/ws/sub/../sub/f")}
            assert len(names) == 1
            assert names.pop().root == str(tmp_path / order[0])


def test_a_root_may_be_the_whole_machine() -> None:
    with LocalDisk(["/"]) as disk:
        assert disk.resolve("/etc/passwd").key == "etc/passwd"
        with pytest.raises(OutsideWorkspace):
            disk.resolve("..")


def test_a_root_must_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for name in ("missing", "file"):
        with pytest.raises(NotFound):
            LocalDisk([tmp_path, tmp_path / name])
    with pytest.raises(InvalidArgument):
        LocalDisk([])


def test_a_target_of_another_disk_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with LocalDisk([tmp_path / "a"]) as one, LocalDisk([tmp_path / "b"]) as other:
        with pytest.raises(InvalidArgument) as caught:
            other.read(one.resolve("x"), limit=1)
        assert caught.value.reason == "foreign_target"


def test_deep_trees_need_few_descriptors(local: LocalWorld) -> None:
    path = "/".join(["d"] * 300)
    (local.root / path).mkdir(parents=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_descriptors() + 40, hard))
    try:
        assert len(local.target(f"{path}/../x").parts) == 300
        local.apply(local.create(f"{path}/f", b"deep"))
        assert local.read(f"{path}/f") == b"deep"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_unsearchable_directory_is_denied(plain: LocalWorld, as_nobody: AsNobody) -> None:
    plain.put("closed/f", b"x")
    plain.root.joinpath("closed").chmod(0)

    def look() -> str:
        try:
            plain.target("closed/f")
        except PermissionDenied as error:
            return error.reason
        return "let in"

    assert as_nobody(look) == "os_denied"


def unreadable_links(times: int) -> Callable[..., str]:
    """Return a readlink that finds something else in the place of a link, so many times."""
    real, left = os.readlink, [times]

    def read(path: str, *, dir_fd: int | None = None) -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return real(path, dir_fd=dir_fd)

    return read


@requirement("promise:contained:races")
@EVERY_KERNEL
def test_a_link_that_changes_while_it_is_read_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: Kernel
) -> None:
    (tmp_path / "a/real").mkdir(parents=True)
    (tmp_path / "a/link").symlink_to("real")
    with LocalDisk([tmp_path], kernel=kernel) as disk:
        monkeypatch.setattr(os, "readlink", unreadable_links(1))
        assert disk.resolve("a/link/f").key == "a/real/f"
        monkeypatch.setattr(os, "readlink", unreadable_links(1_000_000))
        with pytest.raises(OutsideWorkspace) as caught:  # and not for ever
            disk.resolve("a/link/f")
    assert caught.value.reason == "symlink_escape"


@requirement("promise:contained:races")
@EVERY_KERNEL
def test_a_directory_that_becomes_a_link_while_it_is_opened_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: Kernel
) -> None:
    (tmp_path / "a/real").mkdir(parents=True)
    (tmp_path / "a/swapped").mkdir()
    (tmp_path / "link").symlink_to("a")  # paths with a link are taken name by name
    real = os.open

    def swap_then_open(path: Any, *arguments: int, dir_fd: int | None = None) -> int:
        if path == "swapped":
            monkeypatch.setattr(os, "open", real)
            (tmp_path / "a/swapped").rmdir()
            (tmp_path / "a/swapped").symlink_to("real")
        return real(path, *arguments, dir_fd=dir_fd)

    with LocalDisk([tmp_path], kernel=kernel) as disk:
        monkeypatch.setattr(os, "open", swap_then_open)
        assert disk.resolve("link/swapped/f").key == "a/real/f"
    assert (tmp_path / "a/swapped").is_symlink()


@requirement("promise:contained:races")
def test_a_directory_that_the_system_cannot_open_is_not_called_an_escape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to("a")
    real = os.open

    def have_no_descriptor(path: Any, *arguments: int, dir_fd: int | None = None) -> int:
        if path == "a":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(path, *arguments, dir_fd=dir_fd)

    with LocalDisk([tmp_path]) as disk:
        monkeypatch.setattr(os, "open", have_no_descriptor)
        with pytest.raises(SureholdError) as caught:
            disk.resolve("link/f")
    assert not isinstance(caught.value, OutsideWorkspace)
