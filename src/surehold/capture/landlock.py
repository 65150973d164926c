"""Confines a command: it may write only below some directories. Enforced by the kernel, for the whole process tree."""

import ctypes
import errno
import os
from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _RULE_PATH_BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS = 38
_WRITE_FILE = 1 << 1
_WRITES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Write a file; remove and make entries of every kind."""
_REFER, _TRUNCATE, _DEVICES = 1 << 13, 1 << 14, 1 << 15
_REFER_SINCE, _TRUNCATE_SINCE = 2, 3
_FOR_FILES = _WRITE_FILE | _TRUNCATE


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def landlock_version() -> int:
    """Return the version of the kernel's confinement; 0 when there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG), 0)


def confine_writes(directories: Sequence[str]) -> None:
    """Let this process, and every child of it, write only below these directories, for good."""
    version = landlock_version()
    if not version:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    handled = _WRITES | (_REFER if version >= _REFER_SINCE else 0) | (_TRUNCATE if version >= _TRUNCATE_SINCE else 0)
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = _Ruleset(handled)
    fd = _checked(libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(ctypes.sizeof(ruleset)), 0))
    try:
        for directory in directories:
            _allow_below(libc, fd, directory, handled)
        _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, fd, 0))
    finally:
        os.close(fd)


def _allow_below(libc: ctypes.CDLL, ruleset: int, directory: str, handled: int) -> None:
    try:
        parent = os.open(directory, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what does not exist needs no rule
    try:
        allowed = handled if os.path.isdir(directory) else handled & _FOR_FILES
        rule = _PathRule(allowed, parent)
        _checked(libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(parent)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
