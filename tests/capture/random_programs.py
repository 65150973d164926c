"""Programs of random file operations, each named by its seed: what they do is not known before, only that it is undone.

A program is Python text that runs by itself. Calls that fail are part of it: they change nothing, or something.
"""

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PROLOGUE = """
import ctypes, mmap, os, threading
def attempt(work):
    try:
        return work()
    except (OSError, ValueError):
        return None
def write(path, data, flags=0, at=None):
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | flags, 0o644)
    try:
        os.write(fd, data) if at is None else os.pwrite(fd, data, at)
    finally:
        os.close(fd)
def chmod(path, mode):
    os.chmod(path, mode | 0o700 if os.path.isdir(path) else mode)  # nothing locks itself out
def map_and_write(path, data):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[: len(data)] = data[: len(view)]
def write_after(path, data, between):
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    attempt(between)
    os.write(fd, data)
    os.close(fd)
def exchange(one, other):
    libc = ctypes.CDLL(None)
    libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2)
def punch(path, at, size):
    with open(path, "r+b") as file:
        ctypes.CDLL(None).fallocate(file.fileno(), 3, ctypes.c_long(at), ctypes.c_long(size))
def nameless(path, data):
    fd = os.open(os.path.dirname(path) or ".", os.O_TMPFILE | os.O_RDWR, 0o640)
    os.write(fd, data)
    os.link(f"/proc/self/fd/{fd}", path, follow_symlinks=True)
    os.close(fd)
def beside(path, work):
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    work(os.path.basename(path), folder)
    os.close(folder)
def in_child(work):
    child = os.fork()
    if child == 0:
        attempt(work)
        os._exit(0)
    os.waitpid(child, 0)
def in_thread(work):
    thread = threading.Thread(target=attempt, args=(work,))
    thread.start()
    thread.join()
"""
_FILES = (
    "a/f",
    "g",
    "g2",
    "a/b/deep",
    "crlf.txt",
    "empty",
    "ro",
    "docs/1.md",
    "docs/x/y",
    "with space",
    "big",
    "sparse",
)
_OTHERS = ("l", "dang", "ld", "pipe", "a", "a/b", "c", "docs", "docs/x")
_LOCKED_FILES = ("secret", "shut/in")
_LOCKED_FROM = 1000
"""Programs from this seed on also use what may not be read."""
_NEW = ("n1", "n2", "a/n3", "docs/n4", "new", "new/n5", "new/deep/n6", "c/n7")


class _Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        is_late = seed >= _LOCKED_FROM
        self._files = (*_FILES, *_LOCKED_FILES) if is_late else _FILES
        self._others = (*_OTHERS, "shut") if is_late else _OTHERS
        self._modes = ("600", "644", "755", "777", "000", "200") if is_late else ("600", "644", "755", "777")
        self._operations: tuple[Callable[[], str], ...] = (
            self._write,
            self._append,
            self._write_inside,
            self._truncate,
            self._rename,
            self._rename,
            self._exchange,
            self._link,
            self._symlink,
            self._unlink,
            self._unlink,
            self._make_folder,
            self._remove_folder,
            self._chmod,
            self._set_time,
            self._set_attribute,
            self._make_pipe,
            self._map,
            self._write_after,
            self._punch,
            self._nameless,
            self._beside,
        )

    def program(self, length: int) -> str:
        lines = [self._line() for _ in range(length)]
        return _PROLOGUE + "\n".join(lines) + "\n"

    def _line(self) -> str:
        work = f"lambda: {self._operation()}"
        how = self._random.choice(("attempt", "attempt", "attempt", "attempt", "in_child", "in_thread"))
        return f"{how}({work})"

    def _operation(self) -> str:
        return self._random.choice(self._operations)()

    def _file(self) -> str:
        return repr(self._random.choice((*self._files, *_NEW)))

    def _any(self) -> str:
        return repr(self._random.choice((*self._files, *_NEW, *self._others)))

    def _data(self) -> str:
        size = self._random.choice((0, 1, 5, 5, 100, 5000))
        return repr(bytes([self._random.randrange(97, 123)])) + f" * {size}"

    def _write(self) -> str:
        flags = self._random.choice(("os.O_CREAT | os.O_TRUNC", "os.O_CREAT | os.O_EXCL", "os.O_CREAT", "os.O_TRUNC"))
        return f"write({self._file()}, {self._data()}, {flags})"

    def _append(self) -> str:
        return f"write({self._any()}, {self._data()}, os.O_APPEND)"

    def _write_inside(self) -> str:
        return f"write({self._file()}, {self._data()}, 0, {self._random.randrange(300_000)})"

    def _truncate(self) -> str:
        return f"os.truncate({self._file()}, {self._random.choice((0, 1, 4096, 400_000))})"

    def _rename(self) -> str:
        return f"os.rename({self._any()}, {self._any()})"

    def _exchange(self) -> str:
        return f"exchange({self._any()}, {self._any()})"

    def _link(self) -> str:
        return f"os.link({self._file()}, {self._any()}, follow_symlinks=False)"

    def _symlink(self) -> str:
        return f"os.symlink({self._any()}, {self._any()})"

    def _unlink(self) -> str:
        return f"os.unlink({self._any()})"

    def _make_folder(self) -> str:
        return f"os.makedirs({self._any()}, 0o{self._random.choice((755, 700, 711))})"

    def _remove_folder(self) -> str:
        return f"os.rmdir({self._any()})"

    def _chmod(self) -> str:
        return f"chmod({self._any()}, 0o{self._random.choice(self._modes)})"

    def _set_time(self) -> str:
        moment = self._random.randrange(1_000_000_000) * 1_000_000_007
        return f"os.utime({self._any()}, ns=({moment}, {moment}), follow_symlinks={self._random.choice((True, False))})"

    def _set_attribute(self) -> str:
        return self._random.choice(
            (f"os.setxattr({self._file()}, 'user.k', {self._data()})", f"os.removexattr({self._file()}, 'user.k')")
        )

    def _make_pipe(self) -> str:
        return f"os.mkfifo({self._any()})"

    def _map(self) -> str:
        return f"map_and_write({self._file()}, {self._data()})"

    def _write_after(self) -> str:
        return f"write_after({self._file()}, {self._data()}, lambda: {self._unlink()})"

    def _punch(self) -> str:
        return f"punch({self._file()}, 4096 * {self._random.randrange(20)}, 8192)"

    def _nameless(self) -> str:
        return f"nameless({self._file()}, {self._data()})"

    def _beside(self) -> str:
        works = (
            "lambda name, folder: os.unlink(name, dir_fd=folder)",
            "lambda name, folder: os.rename(name, 'moved', src_dir_fd=folder, dst_dir_fd=folder)",
            "lambda name, folder: os.mkdir(name, dir_fd=folder)",
        )
        return f"beside({self._any()}, {self._random.choice(works)})"


def random_program(seed: int) -> str:
    """Return the program of a seed: 3 to 40 operations."""
    return _Writer(seed).program(3 + seed * 7 % 38)
