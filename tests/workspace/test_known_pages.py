"""Pages of a large file: the first takes a pass over all of it, later ones do not, as long as its bytes are the same."""

import hashlib
import mmap
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.app import Settings, open_workspace
from surehold.disk.base import Target
from surehold.disk.kernel import Kernel
from surehold.disk.local import LocalDisk
from surehold.disk.steps import watched
from surehold.disk.tree import read_pieces
from surehold.errors import StaleFile
from surehold.text import page as page_module
from surehold.text.page import FilePage
from surehold.workspace.workspace import Workspace
from waiting import wait_until

SETTLED_SECONDS = 0.03
"""Longer than a tick of the kernel's clock, which is at most 10 ms."""
BIG = b"".join(b"line %07d of many, and some more to make it long\n" % number for number in range(60_000))


@pytest.fixture(autouse=True)
def settled_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "SETTLED_SECONDS", SETTLED_SECONDS)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with LocalDisk([tmp_path]) as disk:
        (tmp_path / "probe").write_bytes(b"")
        with disk.open_steady(disk.resolve("probe")) as steady:
            if steady is None:
                pytest.skip("this file system has no leases")
    (tmp_path / "root").mkdir()
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    with open_workspace(tmp_path / "root", settings=settings) as opened:
        yield opened


@pytest.fixture
def big(tmp_path: Path, workspace: Workspace) -> Path:
    path = tmp_path / "root" / "big"
    path.write_bytes(BIG)
    return path


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the passes over whole files."""
    seen, read = list[int](), page_module.read_page

    def count(*args: object, **more: object) -> FilePage:
        seen.append(1)
        return read(*args, **more)  # pyright: ignore[reportArgumentType] - as it was called

    monkeypatch.setattr(page_module, "read_page", count)
    return seen


def settle(path: Path) -> None:
    wait_until(lambda: path.stat().st_ctime_ns < (time.time() - 2 * SETTLED_SECONDS) * 1e9, "the file to be old enough")


def sha(data: bytes | bytearray) -> str:
    return hashlib.sha256(data).hexdigest()


FILES = {
    "lf": BIG,
    "crlf": BIG.replace(b"\n", b"\r\n"),
    "cr": BIG.replace(b"\n", b"\r"),
    "no final newline": BIG.removesuffix(b"\n"),
    "byte order mark": b"\xef\xbb\xbf" + BIG,
    "long lines": b"".join(b"%d " % number * 300_000 + b"\n" for number in range(3)) + BIG[:1000],
    "wide": BIG[: 1 << 20].decode().encode("utf-16"),
    "not utf-8": BIG.replace(b"many", b"m\xe4ny"),
    "empty": b"",
}


@requirement("engine:disk:known_pages")
@pytest.mark.parametrize("name", FILES)
def test_a_known_page_is_the_page_of_a_pass(tmp_path: Path, workspace: Workspace, passes: list[int], name: str) -> None:
    path = tmp_path / "root" / "file"
    path.write_bytes(FILES[name])
    settle(path)
    luck = random.Random(name)
    workspace.page("file")
    del passes[:]

    for _ in range(12):
        start, count, most = luck.randint(1, 61_000), luck.choice([1, 7, 2000]), luck.choice([50, 5_000, 262_144])
        page = workspace.page("file", start=start, count=count, max_bytes=most)
        chunks = [FILES[name][at : at + (1 << 20)] for at in range(0, len(FILES[name]), 1 << 20)]
        whole = page_module.read_page(
            chunks, start=start, count=count, max_bytes=most, breaker=b"\r" if name == "cr" else b"\n"
        )
        assert page == whole

    assert len(passes) == (24 if name in {"wide", "empty"} else 12)


@requirement("engine:disk:known_pages")
def test_every_change_is_seen_though_size_and_time_are_put_back(big: Path, workspace: Workspace) -> None:
    data = bytearray(BIG)
    for number in range(4):
        settle(big)
        assert workspace.page("big", start=1 + number * 1000).sha256 == sha(data)
        before = big.stat()
        data[100 + number] ^= 1
        with big.open("r+b") as file:
            file.seek(100 + number)
            file.write(data[100 + number : 101 + number])
        os.utime(big, ns=(before.st_atime_ns, before.st_mtime_ns))

        assert (big.stat().st_size, big.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        page = workspace.page("big", start=2, count=1)
        assert (page.sha256, page.rows) == (sha(data), (data.splitlines(keepends=True)[1],))


@requirement("engine:disk:known_pages")
def test_another_file_under_the_same_name_is_another_file(big: Path, workspace: Workspace) -> None:
    settle(big)
    workspace.page("big")
    before, other = big.stat(), big.with_name("other")
    other.write_bytes(BIG.replace(b"many", b"MANY"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))

    other.replace(big)

    assert workspace.page("big").sha256 == sha(BIG.replace(b"many", b"MANY"))


@requirement("engine:disk:known_pages")
@pytest.mark.parametrize("is_first", [True, False])
def test_what_is_written_through_a_mapping_is_seen(
    big: Path, workspace: Workspace, passes: list[int], is_first: bool
) -> None:
    settle(big)
    if not is_first:
        workspace.page("big")
    data = bytearray(BIG)
    with big.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    for number in range(3):  # the second write into a page of memory changes no time of the file
        data[number] = mapped[number] = ord("X")
        assert workspace.page("big", start=9_000).sha256 == sha(data)
    mapped[5] = data[5] = ord("Y")
    mapped.close()

    assert workspace.page("big", start=9_000).sha256 == sha(data)
    assert len(passes) == 5 - is_first


def refuse_lease(*_: object, **__: object) -> str:
    """Answer as a file system without leases."""
    return "none"


@requirement("engine:disk:known_pages")
def test_without_leases_every_page_is_a_pass(
    big: Path, workspace: Workspace, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(big)
    monkeypatch.setattr(Kernel, "take_lease", refuse_lease)
    for _ in range(3):
        assert workspace.page("big").sha256 == sha(BIG)

    assert len(passes) == 3


@requirement("engine:disk:known_pages")
def test_a_file_that_was_just_written_is_not_known_yet(
    big: Path, workspace: Workspace, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "SETTLED_SECONDS", 3600.0)
    for _ in range(2):
        assert workspace.page("big").sha256 == sha(BIG)

    assert len(passes) == 2


@requirement("engine:disk:known_pages")
def test_an_encoding_that_is_asked_for_counts(big: Path, workspace: Workspace) -> None:
    settle(big)
    spelled = [workspace.page("big", encoding=name).file_encoding.name for name in (None, "latin-1", "utf-16-le", None)]

    assert len(set(spelled)) == 3
    assert spelled[0] == spelled[-1]


@requirement("engine:disk:known_pages")
def test_a_program_that_wants_to_write_is_let_in_at_the_next_piece(big: Path) -> None:
    with LocalDisk([big.parent]) as disk, disk.open_steady(disk.resolve("big")) as steady:
        assert steady is not None
        pieces = steady.read_from(0)
        next(pieces)
        with pytest.raises(BlockingIOError):
            os.open(big, os.O_WRONLY | os.O_NONBLOCK)

        with pytest.raises(StaleFile):
            next(pieces)

        os.close(os.open(big, os.O_WRONLY | os.O_NONBLOCK))
        assert not steady.is_steady()


@requirement("engine:disk:known_pages")
@pytest.mark.parametrize("is_known", [False, True])
def test_a_program_that_comes_to_write_during_a_page_is_not_kept_waiting(
    big: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    settle(big)
    if is_known:
        workspace.page("big")
    came = list[int]()

    def let_one_come(fd: int) -> Iterator[bytes]:
        for piece in read_pieces(fd):
            if not came:
                came.append(1)
                with pytest.raises(BlockingIOError):
                    os.open(big, os.O_WRONLY | os.O_NONBLOCK)
            yield piece

    monkeypatch.setattr(watched, "read_pieces", let_one_come)
    page = workspace.page("big", start=30_000, count=1)

    assert (page.sha256, page.rows, came) == (
        sha(BIG),
        (b"line 0029999 of many, and some more to make it long\n",),
        [1],
    )
    os.close(os.open(big, os.O_WRONLY | os.O_NONBLOCK))


def test_a_directory_or_nothing_is_not_opened(tmp_path: Path) -> None:
    with LocalDisk([tmp_path]) as disk:
        (tmp_path / "d").mkdir()
        for name in ("d", "missing"):
            with disk.open_steady(Target(root=str(tmp_path), parts=(name,), key=name)) as steady:
                assert steady is None
