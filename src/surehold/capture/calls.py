"""The system calls that change files: their numbers on each architecture, and where their arguments are.

A call that is not listed here changes no name, no content and no fact of a file, unless through a descriptor that was
opened for writing, which is noticed when it is opened.
"""

import os
from dataclasses import dataclass
from typing import Literal

CallAction = Literal[
    "open", "truncate", "remove", "rename", "link", "make", "facts", "bind", "execute", "leave", "limit", "unkept"
]
"""What a call does: opens for writing; gives a file another length; removes a name; and so on.

`leave`: the process sees other names from then on. `limit`: core dumps may be written from then on. `unkept`: what it changes cannot be kept, so the run is incomplete.
"""

WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CLONE_NEWNS = 0x00020000
_NO_FOLLOW = 0x100
_REMOVE_DIRECTORY = 0x200
_FILE_FLAG_REQUESTS = (
    0x40086602,  # FS_IOC_SETFLAGS
    0x40046602,  # the same of 32 bits
    0x401C5820,  # FS_IOC_FSSETXATTR
    0x40806685,  # FS_IOC_ENABLE_VERITY
    0x40047211,  # FAT_IOCTL_SET_ATTRIBUTES
)
_SUBVOLUME_REQUESTS = (
    0x50009401,  # BTRFS_IOC_SNAP_CREATE
    0x5000940E,  # BTRFS_IOC_SUBVOL_CREATE
    0x5000940F,  # BTRFS_IOC_SNAP_DESTROY
    0x50009417,  # BTRFS_IOC_SNAP_CREATE_V2
    0x50009418,  # BTRFS_IOC_SUBVOL_CREATE_V2
    0x4008941A,  # BTRFS_IOC_SUBVOL_SETFLAGS
    0x5000943F,  # BTRFS_IOC_SNAP_DESTROY_V2
)
_OPEN_TREE_CLONE = 1
_SYS_BIND_OF_SOCKETCALL = 2
_RLIMIT_CORE = 4


class CallRefused(Exception):
    """A call of the command is to fail with this error."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class CallShape:
    """Where the arguments of a call are; an index of -1 means that it has no such argument."""

    action: CallAction
    path: int = 0
    at: int = -1
    """The descriptor of the directory that the path is relative to."""
    to_path: int = -1
    to_at: int = -1
    flags: int = -1
    constant_flags: int = 0
    """Flags that the call has without saying so."""
    by_descriptor: bool = False
    """`path` is the descriptor of an open file."""
    follows: bool = True
    """Whether a link at the end of the path is followed, unless the flags say otherwise."""
    how: int = -1
    """Where a pointer to a structure with the flags is."""
    why: str = ""
    """What the run is incomplete for."""
    any_of: int = 0
    """Notice the call only if its flags have one of these bits."""
    only: tuple[int, ...] = ()
    """Notice the call only if its argument `path` is one of these numbers."""


_O_CREAT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_MOUNTS = "it changed what is mounted where"
_FILE_FLAGS = "it changed the flags of a file (chattr)"
_SUBVOLUMES = "it made, changed or removed a btrfs subvolume"
_KERNEL_FILE = "it let the kernel itself write to a file (acct, swapon)"

CALLS: dict[str, CallShape] = {
    "open": CallShape(action="open", flags=1, any_of=WRITE_FLAGS),
    "openat": CallShape(action="open", at=0, path=1, flags=2, any_of=WRITE_FLAGS),
    "openat2": CallShape(action="open", at=0, path=1, how=2),
    "creat": CallShape(action="open", constant_flags=_O_CREAT_FLAGS),
    "truncate": CallShape(action="truncate"),
    "truncate64": CallShape(action="truncate"),
    "unlink": CallShape(action="remove", follows=False),
    "unlinkat": CallShape(action="remove", at=0, path=1, flags=2, follows=False),
    "rmdir": CallShape(action="remove", constant_flags=_REMOVE_DIRECTORY, follows=False),
    "rename": CallShape(action="rename", to_path=1, follows=False),
    "renameat": CallShape(action="rename", at=0, path=1, to_at=2, to_path=3, follows=False),
    "renameat2": CallShape(action="rename", at=0, path=1, to_at=2, to_path=3, flags=4, follows=False),
    "link": CallShape(action="link", to_path=1, follows=False),
    "linkat": CallShape(action="link", at=0, path=1, to_at=2, to_path=3, flags=4, follows=False),
    "symlink": CallShape(action="make", path=1, follows=False),
    "symlinkat": CallShape(action="make", at=1, path=2, follows=False),
    "mkdir": CallShape(action="make", follows=False),
    "mkdirat": CallShape(action="make", at=0, path=1, follows=False),
    "mknod": CallShape(action="make", follows=False),
    "mknodat": CallShape(action="make", at=0, path=1, follows=False),
    "bind": CallShape(action="bind", path=1, follows=False),
    "chmod": CallShape(action="facts"),
    "fchmod": CallShape(action="facts", by_descriptor=True),
    "fchmodat": CallShape(action="facts", at=0, path=1),
    "fchmodat2": CallShape(action="facts", at=0, path=1, flags=3),
    "chown": CallShape(action="facts"),
    "chown32": CallShape(action="facts"),
    "lchown": CallShape(action="facts", follows=False),
    "lchown32": CallShape(action="facts", follows=False),
    "fchown": CallShape(action="facts", by_descriptor=True),
    "fchown32": CallShape(action="facts", by_descriptor=True),
    "fchownat": CallShape(action="facts", at=0, path=1, flags=4),
    "utime": CallShape(action="facts"),
    "utimes": CallShape(action="facts"),
    "futimesat": CallShape(action="facts", at=0, path=1),
    "utimensat": CallShape(action="facts", at=0, path=1, flags=3),
    "utimensat_time64": CallShape(action="facts", at=0, path=1, flags=3),
    "setxattr": CallShape(action="facts"),
    "lsetxattr": CallShape(action="facts", follows=False),
    "fsetxattr": CallShape(action="facts", by_descriptor=True),
    "removexattr": CallShape(action="facts"),
    "lremovexattr": CallShape(action="facts", follows=False),
    "fremovexattr": CallShape(action="facts", by_descriptor=True),
    "setxattrat": CallShape(action="facts", at=0, path=1, flags=2),
    "removexattrat": CallShape(action="facts", at=0, path=1, flags=2),
    "execve": CallShape(action="execute"),
    "execveat": CallShape(action="execute", at=0, path=1, flags=4),
    "chroot": CallShape(action="leave"),
    "pivot_root": CallShape(action="leave", why=_MOUNTS),
    "setns": CallShape(action="leave"),
    "unshare": CallShape(action="leave", flags=0, any_of=_CLONE_NEWNS),
    "mount": CallShape(action="leave", why=_MOUNTS),
    "umount2": CallShape(action="leave", why=_MOUNTS),
    "move_mount": CallShape(action="leave", why=_MOUNTS),
    "open_tree": CallShape(action="leave", flags=2, any_of=_OPEN_TREE_CLONE, why=_MOUNTS),
    "open_tree_attr": CallShape(action="leave", flags=2, any_of=_OPEN_TREE_CLONE, why=_MOUNTS),
    "fsmount": CallShape(action="leave", why=_MOUNTS),
    "setrlimit": CallShape(action="limit", only=(_RLIMIT_CORE,), how=1),
    "prlimit64": CallShape(action="limit", path=1, only=(_RLIMIT_CORE,), how=2),
    "open_by_handle_at": CallShape(action="unkept", why="it opened a file by its handle"),
    "file_setattr": CallShape(action="unkept", why=_FILE_FLAGS),
    "acct": CallShape(action="unkept", why=_KERNEL_FILE),
    "swapon": CallShape(action="unkept", why=_KERNEL_FILE),
    "ioctl": CallShape(action="unkept", path=1, only=(*_FILE_FLAG_REQUESTS, *_SUBVOLUME_REQUESTS), why=_FILE_FLAGS),
    "socketcall": CallShape(action="unkept", only=(_SYS_BIND_OF_SOCKETCALL,), why="it made a socket"),
}

NO_FOLLOW, REMOVE_DIRECTORY = _NO_FOLLOW, _REMOVE_DIRECTORY

_SHARED_NUMBERS = {
    "openat2": 437,
    "move_mount": 429,
    "open_tree": 428,
    "open_tree_attr": 467,
    "fsmount": 432,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
    "io_uring_setup": 425,
}
"""The same on every architecture."""

_X86_64 = _SHARED_NUMBERS | {
    "open": 2, "ioctl": 16, "bind": 49, "execve": 59, "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85,
    "link": 86, "unlink": 87, "symlink": 88, "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94,
    "utime": 132, "mknod": 133, "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166, "setxattr": 188,
    "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "utimes": 235,
    "openat": 257, "mkdirat": 258, "mknodat": 259, "fchownat": 260, "futimesat": 261, "unlinkat": 263, "renameat": 264,
    "linkat": 265, "symlinkat": 266, "fchmodat": 268, "unshare": 272, "utimensat": 280, "open_by_handle_at": 304,
    "setns": 308, "renameat2": 316, "execveat": 322, "setrlimit": 160, "prlimit64": 302, "acct": 163, "swapon": 167,
}  # fmt: skip
_I386 = _SHARED_NUMBERS | {
    "open": 5, "creat": 8, "link": 9, "unlink": 10, "execve": 11, "mknod": 14, "chmod": 15, "lchown": 16, "mount": 21,
    "utime": 30, "rename": 38, "mkdir": 39, "rmdir": 40, "umount2": 52, "ioctl": 54, "chroot": 61, "symlink": 83,
    "truncate": 92, "fchmod": 94, "fchown": 95, "socketcall": 102, "chown": 182, "truncate64": 193, "lchown32": 198,
    "fchown32": 207, "chown32": 212, "pivot_root": 217, "setxattr": 226, "lsetxattr": 227, "fsetxattr": 228,
    "removexattr": 235, "lremovexattr": 236, "fremovexattr": 237, "utimes": 271, "openat": 295, "mkdirat": 296,
    "mknodat": 297, "fchownat": 298, "futimesat": 299, "unlinkat": 301, "renameat": 302, "linkat": 303, "symlinkat": 304,
    "fchmodat": 306, "unshare": 310, "utimensat": 320, "open_by_handle_at": 342, "setns": 346, "renameat2": 353,
    "execveat": 358, "bind": 361, "utimensat_time64": 412, "setrlimit": 75, "prlimit64": 340, "acct": 51, "swapon": 87,
}  # fmt: skip
_ARM64 = _SHARED_NUMBERS | {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16, "ioctl": 29,
    "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "umount2": 39,
    "mount": 40, "pivot_root": 41, "truncate": 45, "chroot": 51, "fchmod": 52, "fchmodat": 53, "fchownat": 54,
    "fchown": 55, "openat": 56, "utimensat": 88, "unshare": 97, "bind": 200, "execve": 221, "open_by_handle_at": 265,
    "setns": 268, "renameat2": 276, "execveat": 281, "setrlimit": 164, "prlimit64": 261, "acct": 89, "swapon": 224,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTable:
    """The calls of one architecture, by their numbers."""

    arch: int
    """As the kernel names it in a notification."""
    numbers: dict[str, int]
    foreign_from: int = 0
    """Numbers from here on belong to yet another interface, which is refused; 0 for none."""

    def names(self) -> dict[int, str]:
        return {number: name for name, number in self.numbers.items()}


_X32_BIT = 0x40000000
_SECCOMP_NUMBERS = {"x86_64": 317, "aarch64": 277}
_TABLES = {
    "x86_64": (
        CallTable(arch=0xC000003E, numbers=_X86_64, foreign_from=_X32_BIT),
        CallTable(arch=0x40000003, numbers=_I386),
    ),
    "aarch64": (CallTable(arch=0xC00000B7, numbers=_ARM64),),
}


def tables_of(machine: str) -> tuple[CallTable, ...]:
    """Return the tables of a machine, its own first; none for one that is not known."""
    return _TABLES.get(machine, ())


def why_unkept(shape: CallShape, request: int) -> str:
    """Return what a call that asks a file system for something makes the run incomplete for."""
    return _SUBVOLUMES if request & 0xFFFFFFFF in _SUBVOLUME_REQUESTS else shape.why


def seccomp_number(machine: str) -> int:
    return _SECCOMP_NUMBERS[machine]
