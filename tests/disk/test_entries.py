"""Entries of any kind: how they are read, which facts they are given, and how steps put and take them as a whole."""

import os
import socket
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from disk.suite import KERNELS, LocalWorld, local_world, open_descriptors, ordinary_user, sha
from surehold.disk import entries
from surehold.disk.base import PutEntry, SetFacts, Step, StoredEntry, TakeEntry
from surehold.disk.entries import NotTheKind, find_holes, read_attributes, set_facts
from surehold.disk.kernel import Kernel
from surehold.errors import AlreadyExists, NotAFile, StaleFile, SureholdError
from surehold.text.snapshot import Kind, Meta, Version

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
NOBODY = 65534
LIMIT = 1 << 30


def read(world: LocalWorld, key: str, *, limit: int = LIMIT) -> StoredEntry | None:
    return world.disk.read_entry(world.disk.locate(key), limit=limit)


def version_of(world: LocalWorld, key: str) -> Version:
    found = read(world, key)
    assert found is not None, key
    return found.version


def meta(mode: int = 0o644, *, uid: int | None = None, gid: int | None = None, mtime_ns: int = 0) -> Meta:
    return Meta(
        mode=mode, uid=os.geteuid() if uid is None else uid, gid=os.getegid() if gid is None else gid, mtime_ns=mtime_ns
    )


def facts_of(path: Path) -> tuple[int, int, int, int]:
    status = path.lstat()
    return stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns


# Reading


def test_each_kind_of_entry_is_read_with_what_it_holds(plain: LocalWorld) -> None:
    root = plain.root
    (root / "d").mkdir()
    (root / "d/x").touch()
    (root / "f").write_bytes(b"bytes")
    os.link(root / "f", root / "g")
    (root / "empty").touch()
    (root / "l").symlink_to("leads/nowhere")
    os.mkfifo(root / "p")
    found = {name: read(plain, name) for name in ("d", "f", "empty", "l", "p")}
    assert all(found.values())
    shown = {
        name: (one.version.kind, one.version.sha256, one.version.size, one.data, one.names)
        for name, one in found.items()
        if one
    }
    assert shown == {
        "d": ("directory", sha(b"directory"), 0, b"", ("x",)),
        "f": ("file", sha(b"bytes"), 5, b"bytes", ()),
        "empty": ("file", sha(b""), 0, b"", ()),
        "l": ("link", sha(b"leads/nowhere"), 13, b"leads/nowhere", ()),
        "p": ("fifo", sha(b"fifo"), 0, b"", ()),
    }
    one, other = found["f"], read(plain, "g")
    assert one is not None
    assert one == other
    assert (one.links, one.identity) == (2, ((root / "f").stat().st_dev, (root / "f").stat().st_ino))
    assert facts_of(root / "f") == (
        one.version.mode,
        *((one.version.meta.uid, one.version.meta.gid, one.version.meta.mtime_ns) if one.version.meta else ()),
    )


def test_the_root_is_an_entry_too(plain: LocalWorld) -> None:
    plain.put("x", b"")
    found = read(plain, ".")
    assert found is not None
    assert (found.version.kind, found.names) == ("directory", ("x",))


@pytest.mark.parametrize("key", ["missing", "missing/below", "file/below", "link/below", "file/below/that"])
def test_nothing_is_where_nothing_can_be(plain: LocalWorld, key: str) -> None:
    (plain.root / "d").mkdir()
    (plain.root / "d/below").touch()
    (plain.root / "file").touch()
    (plain.root / "link").symlink_to("d")
    assert read(plain, key) is None


def test_what_the_system_refuses_is_not_called_missing(plain: LocalWorld) -> None:
    with pytest.raises(SureholdError) as caught:
        read(plain, "n" * 300)
    assert caught.value.reason == "path_too_long"


def test_a_socket_is_no_entry_of_the_history(plain: LocalWorld) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(plain.root / "s"))
        with pytest.raises(NotAFile) as caught:
            read(plain, "s")
    assert caught.value.details["file_type"] == "socket"


def test_a_file_is_read_up_to_the_limit_and_other_kinds_have_none(plain: LocalWorld) -> None:
    plain.put("f", b"12345")
    (plain.root / "l").symlink_to("f")
    assert version_of(plain, "f") == version_of(plain, "f")
    assert [one and one.data for one in (read(plain, "f", limit=5), read(plain, "l", limit=0))] == [b"12345", b"f"]
    with pytest.raises(SureholdError) as caught:
        read(plain, "f", limit=4)
    assert caught.value.details == {"size": 5, "limit": 4}


@needs_root
def test_entries_of_ours_are_read_whatever_their_modes_and_keep_them(plain: LocalWorld) -> None:
    root = plain.root
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/b/c/f").write_bytes(b"ours")
    os.setxattr(root / "a/b/c/f", "user.k", b"v")
    (root / "a/b/theirs").write_bytes(b"theirs")
    root.chmod(0)
    os.chown(root, NOBODY, NOBODY)
    locked = ("a/b/theirs", "a/b/c/f", "a/b/c", "a/b", "a")
    for name in locked:
        (root / name).chmod(0)
        os.chown(root / name, *((1234, 1234) if name.endswith("theirs") else (NOBODY, NOBODY)))
    descriptors = open_descriptors()
    with ordinary_user():
        file, theirs, directory, top = (read(plain, key) for key in ("a/b/c/f", "a/b/theirs", "a/b/c", "."))
    assert file is not None
    assert theirs is not None
    assert directory is not None
    assert (file.data, file.version.meta and file.version.meta.xattrs) == (b"ours", (("user.k", b"v"),))
    assert (theirs.data, theirs.version.sha256, theirs.version.size) == (b"", "", 6)
    assert top is not None
    assert (directory.names, top.names) == (("f",), ("a",))
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in locked] == [0] * 5
    assert open_descriptors() <= descriptors


@needs_root
def test_a_directory_of_another_user_that_keeps_us_out_shows_no_names(plain: LocalWorld) -> None:
    (plain.root / "d").mkdir(mode=0o700)
    (plain.root / "d/x").touch()
    plain.root.chmod(0o755)
    with ordinary_user():
        found = read(plain, "d")
        with pytest.raises(SureholdError) as caught:
            read(plain, "d/x")
    assert found is not None
    assert (found.names, caught.value.kind) == ((), "permission_denied")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("user.a", True),
        ("trusted.a", True),
        ("system.posix_acl_access", True),
        ("system.posix_acl_default", True),
        ("security.capability", True),
        ("security.selinux", False),
        ("system.nfs4_acl", False),
    ],
)
def test_attributes_that_a_person_or_a_program_may_have_set_are_kept(
    monkeypatch: pytest.MonkeyPatch, name: str, *, kept: bool
) -> None:
    monkeypatch.setattr(os, "listxattr", lambda *_, **__: ["user.z", name])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(os, "getxattr", lambda _, name, **__: name.encode())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownMemberType]
    others = (("user.z", b"user.z"),)
    assert read_attributes("any") == (tuple(sorted(((name, name.encode()), *others))) if kept else others)


def test_attributes_that_vanish_or_that_no_file_system_has_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").touch()
    (tmp_path / "l").symlink_to("f")
    os.setxattr(tmp_path / "f", "user.a", b"1")
    os.setxattr(tmp_path / "f", "user.b", b"2")
    getxattr = os.getxattr

    def get(path: str, name: str, *, follow_symlinks: bool) -> bytes:
        if name == "user.a":
            raise OSError(61, "ENODATA")
        return getxattr(path, name, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "getxattr", get)
    assert read_attributes(str(tmp_path / "f")) == (("user.b", b"2"),)
    assert read_attributes(str(tmp_path / "l")) == ()
    assert read_attributes(str(tmp_path / "l"), follow=True) == (("user.b", b"2"),)
    assert read_attributes(str(tmp_path / "missing")) == ()


BLOCK = 4096


@pytest.mark.parametrize(
    ("written", "size", "holes"),
    [
        ((), 0, ()),
        ((0, 1), 2 * BLOCK, ()),
        ((), 2 * BLOCK, ((0, 2 * BLOCK),)),
        ((1,), 2 * BLOCK, ((0, BLOCK),)),
        ((0, 2), 3 * BLOCK, ((BLOCK, 2 * BLOCK),)),
        ((0,), 2 * BLOCK, ((BLOCK, 2 * BLOCK),)),
        ((1,), 3 * BLOCK, ((0, BLOCK), (2 * BLOCK, 3 * BLOCK))),
    ],
)
def test_holes_are_where_a_file_has_no_blocks(
    tmp_path: Path, written: Sequence[int], size: int, holes: tuple[tuple[int, int], ...]
) -> None:
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, size)
    for block in written:
        os.pwrite(fd, b"x" * BLOCK, block * BLOCK)
    os.lseek(fd, 1, os.SEEK_SET)
    assert find_holes(fd, size) == holes
    assert os.lseek(fd, 0, os.SEEK_CUR) == 0
    os.close(fd)


def test_a_file_with_a_hole_is_recorded_with_it_and_one_whose_blocks_are_reserved_has_none(plain: LocalWorld) -> None:
    size = 1024 * BLOCK
    with (plain.root / "sparse").open("wb") as file:
        file.write(b"x" * (size - 2 * BLOCK))
        file.seek(size - BLOCK)
        file.write(b"x" * BLOCK)
    with (plain.root / "reserved").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    assert version_of(plain, "sparse").holes == ((size - 2 * BLOCK, size - BLOCK),)
    assert version_of(plain, "reserved").holes == ()


# Facts


@needs_root
@pytest.mark.parametrize("kind", ["file", "directory", "fifo"])
def test_an_entry_is_given_all_facts_that_are_not_its_own(tmp_path: Path, kind: Kind) -> None:
    entry = make(tmp_path / "e", kind)
    set_facts(str(entry), kind, meta(0o640, uid=1234, gid=2345, mtime_ns=10**18))
    assert facts_of(entry) == (0o640, 1234, 2345, 10**18)
    set_facts(str(entry), kind, meta(0o600, uid=1234, gid=2345))
    assert facts_of(entry) == (0o600, 1234, 2345, 10**18)


def make(path: Path, kind: Kind) -> Path:
    match kind:
        case "file":
            path.write_bytes(b"x")
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to("target")
    return path


@needs_root
def test_a_link_is_given_its_own_owner_and_time_and_no_mode(tmp_path: Path) -> None:
    make(tmp_path / "target", "file")
    before = facts_of(tmp_path / "target")
    link = make(tmp_path / "l", "link")
    set_facts(str(link), "link", meta(0o600, uid=1234, gid=2345, mtime_ns=10**18))
    assert facts_of(link)[1:] == (1234, 2345, 10**18)
    assert facts_of(tmp_path / "target") == before


@pytest.mark.parametrize("there", ["file", "directory", "fifo", "link"])
@pytest.mark.parametrize("meant", ["file", "directory", "fifo", "link"])
def test_facts_are_given_to_the_kind_that_is_meant(tmp_path: Path, there: Kind, meant: Kind) -> None:
    entry = make(tmp_path / "e", there)
    if there == meant:
        set_facts(str(entry), meant, meta(mtime_ns=10**18))
    else:
        with pytest.raises(NotTheKind):
            set_facts(str(entry), meant, meta(mtime_ns=10**18))
    assert (facts_of(entry)[3] == 10**18) is (there == meant)


@pytest.fixture
def nobodys(tmp_path: Path) -> Iterator[str]:
    """Yield a way to a file of nobody, which does not lead through directories of others."""
    entry = make(tmp_path / "e", "file")
    os.chown(entry, NOBODY, NOBODY)
    place = os.open(tmp_path, os.O_PATH)
    tmp_path.chmod(0o755)
    yield f"/proc/self/fd/{place}/e"
    os.close(place)


@needs_root
@pytest.mark.parametrize(
    ("uid", "gid", "expected"),
    [(1234, 2345, (NOBODY, 2345)), (1234, 3456, (NOBODY, NOBODY)), (NOBODY, 2345, (NOBODY, 2345))],
    ids=["the group is one of ours", "neither is ours", "the owner is"],
)
def test_an_owner_that_we_may_not_give_is_left_and_the_group_is_given_where_it_is_ours(
    nobodys: str, tmp_path: Path, uid: int, gid: int, expected: tuple[int, int]
) -> None:
    with ordinary_user(groups=(2345,)):
        set_facts(nobodys, "file", meta(0o604, uid=uid, gid=gid))
    assert facts_of(tmp_path / "e")[:3] == (0o604, *expected)


def test_facts_that_are_so_already_are_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = make(tmp_path / "e", "file")
    entry.chmod(0o640)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "a read-only file system")

    for name in ("chown", "chmod", "utime"):
        monkeypatch.setattr(os, name, refuse)
    set_facts(str(entry), "file", meta(0o640))


def test_all_facts_go_to_the_entry_that_was_there_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "e", "file").chmod(0o640)
    make(tmp_path / "other", "file").chmod(0o600)
    fstat = os.fstat

    def replace_and_look(fd: int) -> os.stat_result:
        monkeypatch.setattr(os, "fstat", fstat)
        (tmp_path / "e").rename(tmp_path / "moved")
        (tmp_path / "other").rename(tmp_path / "e")
        return fstat(fd)

    monkeypatch.setattr(os, "fstat", replace_and_look)
    set_facts(str(tmp_path / "e"), "file", meta(0o604, mtime_ns=10**18))
    assert (facts_of(tmp_path / "moved")[::3], facts_of(tmp_path / "e")[0]) == ((0o604, 10**18), 0o600)


def test_attributes_are_added_changed_and_removed_and_equal_ones_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make(tmp_path / "e", "file")
    for name in ("user.changed", "user.removed", "user.same"):
        os.setxattr(entry, name, b"1")
    written, setxattr = list[str](), os.setxattr

    def set_one(path: str, name: str, value: bytes) -> None:
        written.append(name)
        setxattr(path, name, value)

    monkeypatch.setattr(os, "setxattr", set_one)
    wanted = (("user.added", b"2"), ("user.changed", b"2"), ("user.same", b"1"))
    set_facts(str(entry), "file", replace(meta(), xattrs=wanted))
    assert (read_attributes(str(entry)), sorted(written)) == (wanted, ["user.added", "user.changed"])


@needs_root
@pytest.mark.parametrize(("before", "wanted", "modes"), [(b"1", b"1", []), (b"1", b"2", [0o600, 0o400])])
def test_a_read_only_file_is_writable_only_while_its_attributes_change(
    nobodys: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, before: bytes, wanted: bytes, modes: list[int]
) -> None:
    os.setxattr(tmp_path / "e", "user.a", before)
    (tmp_path / "e").chmod(0o400)
    seen, chmod = list[int](), os.chmod

    def note(path: str, mode: int) -> None:
        seen.append(mode)
        chmod(path, mode)

    monkeypatch.setattr(os, "chmod", note)
    with ordinary_user():
        set_facts(nobodys, "file", replace(meta(0o400), xattrs=(("user.a", wanted),)))
    assert (read_attributes(str(tmp_path / "e")), seen) == ((("user.a", wanted),), modes)
    assert facts_of(tmp_path / "e")[0] == 0o400


@needs_root
def test_a_writable_file_keeps_its_mode_while_its_attributes_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make(tmp_path / "e", "file")
    entry.chmod(0o640)
    monkeypatch.setattr(os, "chmod", lambda *_: pytest.fail("the mode was set"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    set_facts(str(entry), "file", replace(meta(0o640), xattrs=(("user.a", b"1"),)))
    assert read_attributes(str(entry)) == (("user.a", b"1"),)


# Places


def test_a_recorded_name_leads_below_the_first_root_or_is_absolute(tmp_path: Path) -> None:
    world = local_world(tmp_path, KERNELS["local"], roots=("one", "two"))
    assert world.disk.locate("a/b") == world.disk.locate(f"{tmp_path}/one/a/b")
    assert world.disk.locate(f"{tmp_path}/two/a").root == str(tmp_path / "two")


def test_the_directories_that_a_path_would_need_are_named_from_the_outermost(plain: LocalWorld) -> None:
    (plain.root / "there").mkdir()
    (plain.root / "file").touch()
    disk = plain.disk
    missing = {
        key: disk.missing_directories(disk.locate(key))
        for key in ("x", "there/x", "a/x", "there/a/x", "there/a/b/x", "file/x")
    }
    assert missing == {
        "x": (),
        "there/x": (),
        "a/x": ("a",),
        "there/a/x": ("there/a",),
        "there/a/b/x": ("there/a", "there/a/b"),
        "file/x": ("file",),
    }


def test_only_an_empty_directory_that_may_go_is_removed(plain: LocalWorld) -> None:
    (plain.root / "empty").mkdir()
    (plain.root / "deep/full").mkdir(parents=True)
    (plain.root / "file").touch()
    asked = list[str]()

    def remove(key: str, *, agreed: bool = True) -> bool:
        def may_go() -> bool:
            asked.append(key)
            return agreed

        return plain.disk.remove_empty(plain.disk.locate(key), may_go=may_go, timeout=1)

    assert [remove(key) for key in (".", "deep", "file", "missing")] == [False] * 4
    assert (remove("empty", agreed=False), asked) == (False, ["empty"])
    assert [remove("empty"), remove("deep/full"), remove("empty")] == [True, True, False]
    assert plain.entries() == ["deep", "file"]


def test_a_directory_that_is_filled_in_the_last_moment_stays(
    plain: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plain.root / "d").mkdir()
    rmdir = os.rmdir

    def fill_and_remove(name: str, *, dir_fd: int) -> None:
        (plain.root / "d/new").touch()
        rmdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", fill_and_remove)
    descriptors = open_descriptors()
    assert plain.disk.remove_empty(plain.disk.locate("d"), may_go=lambda: True, timeout=1) is False
    assert plain.entries() == ["d", "d/new"]
    assert open_descriptors() <= descriptors


# Steps


def bare(data: bytes = b"", kind: Kind = "file", **more: object) -> Version:
    facts = more.get("facts")
    assert facts is None or isinstance(facts, Meta)
    return Version(sha256=entries.name_content(kind, data), size=len(data), kind=kind, meta=facts)


def put(world: LocalWorld, key: str, data: bytes = b"", kind: Kind = "file", **more: object) -> PutEntry:
    expected, link_to = more.pop("expected", None), more.pop("link_to", None)
    assert expected is None or isinstance(expected, Version)
    assert link_to is None or isinstance(link_to, str)
    return PutEntry(
        target=world.disk.locate(key),
        version=bare(data, kind, **more),
        data=data,
        expected=expected,
        link_to=world.disk.locate(link_to) if link_to else None,
    )


def take(world: LocalWorld, key: str, expected: Version, *, refuge: str = "") -> TakeEntry:
    return TakeEntry(target=world.disk.locate(key), expected=expected, refuge=world.disk.locate(refuge or key))


def facts(world: LocalWorld, key: str, kind: Kind, before: Meta, after: Meta) -> SetFacts:
    return SetFacts(target=world.disk.locate(key), kind=kind, before=before, after=after)


def state_of(world: LocalWorld) -> dict[str, tuple[object, ...]]:
    """Return all that is below the root, with its facts; what a directory's time says follows from its entries."""
    found = dict[str, tuple[object, ...]]()
    for key in (".", *world.entries()):
        one = read(world, key)
        assert one is not None
        assert one.version.meta is not None
        times = () if one.version.kind == "directory" else (one.version.meta.mtime_ns,)
        found[key] = (one.version.kind, one.data, one.version.meta.mode, one.version.meta.uid, one.links, *times)
    return found


@pytest.fixture(params=list(KERNELS))
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> LocalWorld:
    world = local_world(tmp_path, KERNELS[request.param])
    world.put("f", b"old")
    (world.root / "f").chmod(0o640)
    os.utime(world.root / "f", ns=(10**18, 10**18))
    (world.root / "l").symlink_to("f")
    os.mkfifo(world.root / "p")
    world.put("d/x", b"x")
    (world.root / "e").mkdir(mode=0o750)
    return world


def every_step(world: LocalWorld) -> tuple[tuple[Step, ...], dict[str, tuple[str, bytes]]]:
    """Return steps of every kind, and what is there after them."""
    there = {key: version_of(world, key) for key in ("f", "l", "p", "d", "d/x", "e")}
    mine = meta(0o604, mtime_ns=2 * 10**18)
    steps = (
        put(world, "f", b"new", facts=mine, expected=there["f"]),
        put(world, "l", b"elsewhere", "link", facts=mine, expected=there["l"]),
        put(world, "p", b"a file now", expected=there["p"]),
        put(world, "n", b"", "directory"),
        put(world, "n/a", b"new", facts=mine),
        put(world, "n/b", b"new", facts=mine, link_to="n/a"),
        put(world, "n/q", b"", "fifo", facts=mine),
        take(world, "d/x", there["d/x"], refuge="d"),
        take(world, "d", there["d"]),
        take(world, "e", there["e"]),
        facts(world, "n", "directory", meta(0o700), meta(0o755, mtime_ns=3 * 10**18)),
    )
    after = {
        "f": ("file", b"new"),
        "l": ("link", b"elsewhere"),
        "n": ("directory", b""),
        "n/a": ("file", b"new"),
        "n/b": ("file", b"new"),
        "n/q": ("fifo", b""),
        "p": ("file", b"a file now"),
    }
    return steps, after


def test_steps_of_every_kind_leave_what_they_say_and_nothing_else(scene: LocalWorld) -> None:
    steps, after = every_step(scene)
    descriptors = open_descriptors()
    scene.apply(*steps)
    found = state_of(scene)
    assert {key: (one[0], one[1]) for key, one in found.items() if key != "."} == after
    assert [found[key][2] for key in ("f", "n", "n/a", "n/q", "p")] == [0o604, 0o755, 0o604, 0o604, 0o600]
    assert [(scene.root / key).lstat().st_mtime_ns for key in ("f", "l", "n/q", "n")] == [*[2 * 10**18] * 3, 3 * 10**18]
    assert (scene.root / "n/a").stat().st_ino == (scene.root / "n/b").stat().st_ino
    assert scene.kept == []
    assert open_descriptors() <= descriptors


@pytest.mark.parametrize("count", range(1, 12))
def test_steps_of_every_kind_are_taken_back_when_a_later_one_fails(scene: LocalWorld, count: int) -> None:
    steps, _ = every_step(scene)
    before, descriptors = state_of(scene), open_descriptors()
    with pytest.raises(StaleFile):
        scene.apply(*steps[:count], take(scene, "missing", bare(b"x")))
    assert (state_of(scene), scene.kept) == (before, [])
    assert open_descriptors() <= descriptors


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("f", bare(b"other")),
        ("f", bare(b"old", "link")),
        ("f", bare(b"", "fifo")),
        ("l", bare(b"elsewhere", "link")),
        ("l", bare(b"f")),
        ("p", bare(b"")),
        ("d/x", bare(b"", "link")),
        ("missing", bare(b"x")),
    ],
)
@pytest.mark.parametrize("how", ["replaced", "taken"])
def test_what_is_not_as_expected_stays_and_is_refused(scene: LocalWorld, how: str, key: str, wrong: Version) -> None:
    before = state_of(scene)
    with pytest.raises(StaleFile) as caught:
        scene.apply(put(scene, key, b"new", expected=wrong) if how == "replaced" else take(scene, key, wrong))
    assert (caught.value.path, caught.value.details["expected"]) == (key, wrong.sha256)
    assert caught.value.reason == ("vanished" if key == "missing" else "displaced_mismatch")
    assert (state_of(scene), scene.kept) == (before, [])


@pytest.mark.parametrize(("key", "reason"), [("f", None), ("l", None), ("d", "directory")])
def test_an_entry_is_put_only_where_nothing_is(scene: LocalWorld, key: str, reason: str | None) -> None:
    before = state_of(scene)
    with pytest.raises(AlreadyExists) as caught:
        scene.apply(put(scene, key, b"new"))
    assert (caught.value.path, caught.value.reason) == (key, reason or AlreadyExists("", path="").reason)
    assert (state_of(scene), scene.kept) == (before, [])


def test_a_directory_that_has_entries_is_not_taken(scene: LocalWorld) -> None:
    before = state_of(scene)
    with pytest.raises(SureholdError):
        scene.apply(take(scene, "d", bare(kind="directory")))
    for there in ("d", "e"):
        with pytest.raises(AlreadyExists):
            scene.apply(put(scene, there, kind="directory"))
    assert state_of(scene) == before


@pytest.mark.parametrize(
    ("link_to", "linked"), [("other", False), ("same", True), ("missing", False), ("text", False), ("p", False)]
)
def test_a_further_name_is_given_to_a_file_that_still_has_these_bytes(
    scene: LocalWorld, link_to: str, *, linked: bool
) -> None:
    scene.put("other", b"other")
    scene.put("same", b"same")
    (scene.root / "text").symlink_to("same")
    scene.apply(put(scene, "new", b"same", link_to=link_to))
    assert (scene.root / "new").read_bytes() == b"same"
    assert (scene.root / "new").stat().st_nlink == (2 if linked else 1)
    assert link_to == "missing" or (scene.root / link_to).lstat().st_nlink == (2 if linked else 1)


def test_a_file_is_written_with_its_holes(scene: LocalWorld) -> None:
    data = b"x" * BLOCK + bytes(BLOCK) + b"y" * BLOCK + bytes(2 * BLOCK)
    holes = ((BLOCK, 2 * BLOCK), (3 * BLOCK, 5 * BLOCK))
    step = put(scene, "new", data)
    scene.apply(replace(step, version=replace(step.version, holes=holes)))
    found = read(scene, "new")
    assert found is not None
    assert (found.data, found.version.holes) == (data, holes)


def test_facts_of_the_root_and_of_entries_are_set_and_taken_back(scene: LocalWorld) -> None:
    wanted = meta(0o711, mtime_ns=10**18)
    steps = (
        facts(scene, ".", "directory", meta(0o755), wanted),
        facts(scene, "f", "file", meta(0o640, mtime_ns=10**18), meta(0o604, mtime_ns=2 * 10**18)),
        facts(scene, "e", "directory", meta(0o750), replace(wanted, mode=0o500)),
    )
    scene.root.chmod(0o755)
    before = state_of(scene)
    with pytest.raises(StaleFile):
        scene.apply(*steps, take(scene, "missing", bare(b"x")))
    assert state_of(scene) == before
    scene.apply(*steps)
    assert [facts_of(scene.root / key)[::3] for key in (".", "f", "e")] == [
        (0o711, 10**18),
        (0o604, 2 * 10**18),
        (0o500, 10**18),
    ]


def test_facts_of_another_kind_of_entry_are_refused(scene: LocalWorld) -> None:
    before = state_of(scene)
    with pytest.raises(StaleFile) as caught:
        scene.apply(facts(scene, "f", "directory", meta(), meta()))
    assert (caught.value.path, state_of(scene)) == ("f", before)


def test_a_directory_is_open_to_us_until_all_is_done(scene: LocalWorld) -> None:
    seen = list[int]()
    with pytest.raises(StaleFile):
        scene.disk.apply(
            (facts(scene, "e", "directory", meta(0o750), meta(0o055)), take(scene, "missing", bare(b"x"))),
            tag="t",
            fence=lambda: None,
            keep=scene.keep,
        )
    wanted = facts(scene, "e", "directory", meta(0o750), meta(0o055))
    with pytest.MonkeyPatch.context() as patch:
        set_now = entries.set_facts

        def note(path: str, kind: Kind, given: Meta) -> None:
            seen.append(given.mode)
            set_now(path, kind, given)

        patch.setattr("surehold.disk.steps.entries.set_facts", note)
        scene.apply(wanted)
    assert (seen, facts_of(scene.root / "e")[0]) == ([0o755, 0o055], 0o055)


def test_a_directory_that_a_later_step_takes_needs_no_facts(scene: LocalWorld) -> None:
    there = version_of(scene, "e")
    scene.apply(
        facts(scene, "e", "directory", meta(0o750), meta(0o711)), take(scene, "e", there), put(scene, "e", b"a file")
    )
    assert (scene.root / "e").read_bytes() == b"a file"


def test_facts_of_a_file_that_a_later_step_replaces_are_those_of_that_step(scene: LocalWorld) -> None:
    scene.apply(
        facts(scene, "f", "file", meta(0o640), meta(0o604)),
        put(scene, "f", b"new", facts=meta(0o600), expected=bare(b"old")),
    )
    assert facts_of(scene.root / "f")[0] == 0o600


def test_facts_that_were_never_set_are_not_taken_back(scene: LocalWorld) -> None:
    before = state_of(scene)
    with pytest.raises(StaleFile):
        scene.apply(take(scene, "missing", bare(b"x")), facts(scene, "f", "file", meta(0o777), meta(0o604)))
    assert state_of(scene) == before


def test_a_directory_that_is_made_anew_is_taken_back_with_what_was_in_the_one_before(scene: LocalWorld) -> None:
    there = {key: version_of(scene, key) for key in ("d", "d/x")}
    steps = (
        take(scene, "d/x", there["d/x"], refuge="d"),
        take(scene, "d", there["d"]),
        put(scene, "d", kind="directory"),
        put(scene, "d/y", b"y"),
    )
    before = state_of(scene)
    with pytest.raises(StaleFile):
        scene.apply(*steps, take(scene, "missing", bare(b"x")))
    assert state_of(scene) == before
    scene.apply(*steps)
    assert (scene.root / "d/y").read_bytes() == b"y"


def test_a_file_that_cannot_have_a_further_name_is_written_once_more(
    scene: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.put("same", b"same")
    step, link = put(scene, "new", b"same", link_to="same"), os.link

    def refuse(source: str, name: str, **more: int) -> None:
        if source == "same":
            raise OSError(31, "too many links")
        link(source, name, **more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(os, "link", refuse)
    scene.apply(step)
    assert ((scene.root / "new").read_bytes(), (scene.root / "new").stat().st_nlink) == (b"same", 1)


def step_of(world: LocalWorld, name: str) -> Step:
    match name:
        case "made":
            return put(world, "d/n", b"new")
        case "replaced":
            return put(world, "d/x", b"new", expected=bare(b"x"))
        case "a directory made":
            return put(world, "d/n", kind="directory")
        case "a directory taken":
            return take(world, "e", bare(kind="directory"))
        case "taken":
            return take(world, "d/x", bare(b"x"), refuge="f")
        case _:
            return facts(world, "d/x", "file", meta(), meta(0o600))


@pytest.mark.parametrize(
    ("name", "synced"),
    [
        ("made", ["d"]),
        ("replaced", ["d"]),
        ("a directory made", ["d"]),
        ("a directory taken", ["."]),
        ("taken", [".", "d"]),
        ("other facts", []),
    ],
)
def test_directories_whose_names_change_are_synced_forth_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, synced: list[str]
) -> None:
    paths = set[str]()

    def note(fd: int) -> None:
        paths.add(str(Path(f"/proc/self/fd/{fd}").readlink()))

    monkeypatch.setattr("surehold.disk.steps.staging.sync", note)
    for number, kernel in enumerate(KERNELS.values()):
        (tmp_path / str(number)).mkdir()
        world = local_world(tmp_path / str(number), kernel, durability="full")
        world.put("d/x", b"x")
        world.put("f", b"f")
        (world.root / "e").mkdir()
        with pytest.raises(StaleFile):
            world.apply(step_of(world, name), take(world, "missing", bare(b"x")))
        assert paths == {str(world.root / directory) for directory in synced}
        paths.clear()
        world.apply(step_of(world, name))
        assert paths == {str(world.root / directory) for directory in synced}
        paths.clear()


def test_what_is_displaced_under_another_name_stays(scene: LocalWorld) -> None:
    os.link(scene.root / "f", scene.root / "again")
    scene.apply(put(scene, "f", b"new", expected=bare(b"old")), take(scene, "p", bare(kind="fifo")))
    assert ((scene.root / "again").read_bytes(), (scene.root / "f").read_bytes(), scene.kept) == (b"old", b"new", [])
    assert sorted(os.listdir(scene.root)) == ["again", "d", "e", "f", "l"]  # noqa: PTH208


@needs_root
def test_a_file_that_is_not_for_us_to_read_is_known_by_its_size(tmp_path: Path) -> None:
    world = local_world(tmp_path, Kernel(leases=False))
    world.put("secret", b"12345")
    (world.root / "secret").chmod(0o600)
    world.root.chmod(0o777)
    with ordinary_user():
        there = version_of(world, "secret")
        assert (there.sha256, there.size) == ("", 5)
        with pytest.raises(StaleFile):
            world.apply(take(world, "secret", replace(there, size=6)))
        world.apply(take(world, "secret", there))
    assert world.entries() == []
