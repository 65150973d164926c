"""Other programs that strike while entries are switched as a whole, as the undo of a command does."""

import os
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from disk.suite import LocalWorld, local_world, sha
from spec.marks import requirement
from surehold.disk.base import PutEntry, SetFacts, Step, TakeEntry
from surehold.disk.entries import NotTheKind, read_attributes, set_facts
from surehold.disk.kernel import Kernel
from surehold.disk.steps import entries
from surehold.disk.steps.entries import check_entry
from surehold.disk.steps.staging import DirectorySlot, DisplacedFile
from surehold.errors import StaleFile, SureholdError
from surehold.text.snapshot import Meta, Version


@dataclass(kw_only=True)
class Struck:
    """A disk on which another program strikes when everything is published, and the program's open file."""

    world: LocalWorld
    strikes: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    swaps: bool = True
    """Names can be swapped."""

    def version(self, data: bytes) -> Version:
        return Version(sha256=sha(data), size=len(data), meta=None)

    def put(self, path: str, data: bytes, *, expected: bytes | None) -> PutEntry:
        there = None if expected is None else self.version(expected)
        return PutEntry(target=self.world.target(path), version=self.version(data), data=data, expected=there)

    def take(self, path: str, *, expected: bytes) -> TakeEntry:
        target = self.world.target(path)
        return TakeEntry(target=target, expected=self.version(expected), refuge=target)

    def strike_then_fail(self) -> SetFacts:
        """Return a step at which the other programs strike, and which fails since its file is a directory."""
        (self.world.root / "last").mkdir()
        facts = Meta(mode=0o600, uid=os.getuid(), gid=os.getgid(), mtime_ns=0, xattrs=())
        return SetFacts(target=self.world.target("last"), kind="file", before=facts, after=facts)

    def apply(self, *steps: Step) -> None:
        self.world.apply(*steps)

    def files(self) -> dict[str, bytes]:
        return self.world.listing()


@pytest.fixture(params=[True, False], ids=["swap", "rename over"])
def struck(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Struck:
    kernel = Kernel(leases=False, exchange=request.param, noreplace=request.param)
    scene = Struck(world=local_world(tmp_path, kernel, durability="full"), swaps=request.param)

    def strike(*args: Any) -> None:
        while scene.strikes:
            scene.strikes.pop(0)()
        if len(args) > 1:
            set_facts(*args)

    monkeypatch.setattr("surehold.disk.tree.Tree.sync_file_systems", strike)
    monkeypatch.setattr("surehold.disk.steps.entries.set_facts", strike)
    return scene


@requirement("promise:nothing_lost:outside_edit")
def test_what_is_written_into_a_replaced_file_before_it_is_dropped_is_kept(struck: Struck) -> None:
    struck.world.put("a", b"old\n")
    with (struck.world.root / "a").open("ab", buffering=0) as file:
        struck.strikes.append(lambda: file.write(b"more\n"))
        struck.apply(struck.put("a", b"new\n", expected=b"old\n"))
    assert (struck.files(), struck.world.kept) == ({"a": b"new\n"}, [b"old\nmore\n"])


@requirement("promise:nothing_lost:outside_edit")
def test_what_is_written_into_a_taken_file_before_it_is_dropped_is_kept(struck: Struck) -> None:
    struck.world.put("a", b"old\n")
    with (struck.world.root / "a").open("ab", buffering=0) as file:
        struck.strikes.append(lambda: file.write(b"more\n"))
        struck.apply(struck.take("a", expected=b"old\n"))
    assert (struck.files(), struck.world.kept) == ({}, [b"old\nmore\n"])


def test_what_no_program_touched_is_dropped_and_not_kept(struck: Struck) -> None:
    struck.world.put("a", b"old\n")
    struck.world.put("b", b"old\n")
    struck.apply(struck.put("a", b"new\n", expected=b"old\n"), struck.take("b", expected=b"old\n"))
    assert (struck.files(), struck.world.kept) == ({"a": b"new\n"}, [])


@requirement("promise:nothing_lost:outside_edit")
@pytest.mark.parametrize("before", [b"old\n", None], ids=["replaced", "made"])
def test_what_is_written_into_a_new_file_survives_its_undo(struck: Struck, before: bytes | None) -> None:
    struck.world.put("a", before)
    struck.strikes.append(lambda: struck.world.put("a", b"theirs\n"))
    with pytest.raises(StaleFile):
        struck.apply(struck.put("a", b"new\n", expected=before), struck.strike_then_fail())
    assert (struck.files(), struck.world.kept) == ({"a": before} if before else {}, [b"theirs\n"])


@requirement("promise:nothing_lost:outside_edit")
@pytest.mark.parametrize("before", [b"old\n", None], ids=["replaced", "made"])
def test_a_file_that_was_renamed_over_a_new_one_is_the_newest_and_stays(struck: Struck, before: bytes | None) -> None:
    struck.world.put("a", before)

    def save() -> None:
        (struck.world.outside / "save").write_bytes(b"theirs\n")
        (struck.world.outside / "save").replace(struck.world.root / "a")

    struck.strikes.append(save)
    with pytest.raises(StaleFile):
        struck.apply(struck.put("a", b"new\n", expected=before), struck.strike_then_fail())
    assert struck.files() == {"a": b"theirs\n"}


@pytest.mark.parametrize("written", [b"", b"more\n"], ids=["left alone", "written into"])
def test_a_displaced_file_is_kept_when_a_newer_one_is_at_its_path_and_it_was_written_into(
    struck: Struck, written: bytes
) -> None:
    struck.world.put("a", b"old\n")
    with (struck.world.root / "a").open("ab", buffering=0) as file:

        def save() -> None:
            file.write(written)
            (struck.world.outside / "save").write_bytes(b"theirs\n")
            (struck.world.outside / "save").replace(struck.world.root / "a")

        struck.strikes.append(save)
        with pytest.raises(StaleFile):
            struck.apply(struck.put("a", b"new\n", expected=b"old\n"), struck.strike_then_fail())
    assert struck.files() == {"a": b"theirs\n"}
    if written or not struck.swaps:  # the old bytes themselves are in the history
        assert struck.world.kept == [b"old\n" + written]
    else:
        assert struck.world.kept == []


@pytest.mark.parametrize("before", [b"old\n", None], ids=["replaced", "made"])
def test_a_new_file_that_another_program_removed_is_not_missed_when_it_is_taken_back(
    struck: Struck, before: bytes | None
) -> None:
    struck.world.put("a", before)
    struck.strikes.append(lambda: struck.world.put("a", None))
    with pytest.raises(StaleFile):
        struck.apply(struck.put("a", b"new\n", expected=before), struck.strike_then_fail())
    assert struck.files() == ({} if before is None or struck.swaps else {"a": b"old\n"})
    assert struck.world.kept == []


def test_what_is_written_into_a_displaced_file_through_another_name_has_that_name(struck: Struck) -> None:
    struck.world.put("a", b"old\n")
    os.link(struck.world.root / "a", struck.world.root / "b")
    struck.strikes.append(lambda: (struck.world.root / "b").write_bytes(b"theirs\n"))
    struck.apply(struck.put("a", b"new\n", expected=b"old\n"))
    assert (struck.files(), struck.world.kept) == ({"a": b"new\n", "b": b"theirs\n"}, [])


@requirement("promise:nothing_lost:outside_edit")
def test_a_file_that_appears_where_one_was_taken_stays_when_that_is_undone(struck: Struck) -> None:
    struck.world.put("a", b"old\n")
    struck.strikes.append(lambda: struck.world.put("a", b"theirs\n"))
    with pytest.raises(StaleFile):
        struck.apply(struck.take("a", expected=b"old\n"), struck.strike_then_fail())
    assert (struck.files(), struck.world.kept) == ({"a": b"theirs\n"}, [b"old\n"])


@requirement("promise:nothing_lost:outside_edit")
def test_a_file_that_appears_between_two_renames_stays_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = local_world(tmp_path, Kernel(leases=False, exchange=False))
    scene, rename = Struck(world=world), Kernel.rename_new
    world.put("a", b"old\n")

    def strike_and_rename(kernel: Kernel, source_fd: int, source: str, dir_fd: int, name: str) -> None:
        if not (world.root / "a").exists():
            world.put("a", b"theirs\n")
        rename(kernel, source_fd, source, dir_fd, name)

    monkeypatch.setattr(Kernel, "rename_new", strike_and_rename)
    with pytest.raises(SureholdError):
        scene.apply(scene.put("a", b"new\n", expected=b"old\n"))
    assert (scene.files(), world.kept) == ({"a": b"theirs\n"}, [b"old\n"])


@requirement("promise:nothing_lost:outside_edit")
@pytest.mark.skipif(sys.platform != "linux", reason="leases are of Linux")
def test_a_program_that_has_a_displaced_file_open_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = local_world(tmp_path, Kernel(), durability="none")
    world.put("a", b"old\n")
    script = (
        "import os, sys\nfd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)\nprint(flush=True)\n"
        "sys.stdin.readline()\nos.write(fd, b'more')\n"
    )
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script, str(world.root / "a")], **pipes) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdout.readline()

        def check_then_write(place: DirectorySlot, name: str, expected: Version) -> DisplacedFile:
            seen = check_entry(place, name, expected)
            assert program.stdin is not None
            program.stdin.write("\n")
            program.stdin.flush()
            return seen

        monkeypatch.setattr(entries, "check_entry", check_then_write)
        monkeypatch.setattr(entries, "LATE_WRITER_WAIT_SECONDS", 600)
        scene = Struck(world=world)
        scene.apply(scene.put("a", b"replaced", expected=b"old\n"))
    assert (scene.files(), world.kept) == ({"a": b"replaced"}, [b"old\nmore"])


@requirement("promise:contained:races")
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_facts_are_never_set_through_a_link_that_took_the_place(tmp_path: Path, kind: str) -> None:
    outside, link = tmp_path / "outside", tmp_path / "link"
    outside.write_bytes(b"x") if kind == "file" else outside.mkdir()
    outside.chmod(0o700)
    link.symlink_to(outside)
    facts = Meta(mode=0o777, uid=os.getuid(), gid=os.getgid(), mtime_ns=1, xattrs=(("user.k", b"v"),))
    with pytest.raises(NotTheKind):
        set_facts(str(link), "file" if kind == "file" else "directory", facts)
    status = outside.stat()
    assert (stat.S_IMODE(status.st_mode), os.listxattr(outside)) == (0o700, [])
    assert status.st_mtime_ns != 1


def test_the_facts_of_a_link_are_not_those_of_the_file_that_it_leads_to(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"x")
    file.chmod(0o640)
    os.setxattr(file, "user.k", b"v")
    before = file.stat()
    link.symlink_to(file)

    set_facts(str(link), "link", Meta(mode=0o777, uid=os.getuid(), gid=os.getgid(), mtime_ns=1, xattrs=()))

    assert os.getxattr(file, "user.k") == b"v"
    assert file.stat() == before
    assert link.lstat().st_mtime_ns == 1


def test_the_access_list_of_an_entry_is_one_of_its_attributes(tmp_path: Path) -> None:
    file, acl = tmp_path / "file", "system.posix_acl_access"
    file.touch()
    os.setxattr(file, "user.k", b"v")
    rights = [(0x01, 6, 0xFFFFFFFF), (0x02, 6, 12345), *((tag, 6, 0xFFFFFFFF) for tag in (0x04, 0x10, 0x20))]
    try:
        os.setxattr(file, acl, struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in rights))
    except OSError:
        pytest.skip("This file system has no access lists.")

    assert read_attributes(str(file)) == ((acl, os.getxattr(file, acl)), ("user.k", b"v"))
