"""The filter that a command and all of its children run under: it reports calls that change files, and lets all others pass.

Rules:
1. Nothing that only reads is reported; flags that are in a register are decided by the filter itself.
2. `io_uring_setup` answers ENOSYS, as on a kernel without it: its requests would pass unseen.
3. The filter needs no privilege, only the promise that no program of the tree gains one (`NO_NEW_PRIVS`).
"""

import array
import ctypes
import errno
import os
import socket
import struct
from collections.abc import Sequence
from functools import cache

from surehold.capture.calls import CALLS, CallShape, CallTable, seccomp_number, tables_of

_LOAD, _JUMP, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_ALLOW, _NOTIFY, _REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER, _GET_ACTION = 1, 2
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5


def _instruction(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)


_PASS, _REPORT, _NO_SUCH_CALL = (
    _instruction(_RETURN, _ALLOW),
    _instruction(_RETURN, _NOTIFY),
    _instruction(_RETURN, _REFUSE | errno.ENOSYS),
)


@cache
def build_filter(machine: str) -> bytes:
    """Return the program for a machine: one block for each architecture that its programs may have."""
    code = [_instruction(_LOAD, _ARCH_AT)]
    for table in tables_of(machine):
        block = _block_of(table)
        code += [_instruction(_IF_EQUAL, table.arch, yes=1), _instruction(_JUMP, len(block)), *block]
    return b"".join([*code, _REPORT])  # an architecture without a table: everything is reported, and is incomplete


def _block_of(table: CallTable) -> list[bytes]:
    block = [_instruction(_LOAD, _NUMBER_AT)]
    if table.foreign_from:
        block += [_instruction(_IF_AT_LEAST, table.foreign_from, no=1), _NO_SUCH_CALL]
    for name, number in table.numbers.items():
        rule = [_NO_SUCH_CALL] if name == "io_uring_setup" else _rule_for(CALLS[name])
        block += [_instruction(_IF_EQUAL, number, no=len(rule)), *rule]
    return [*block, _PASS]


def _rule_for(shape: CallShape) -> list[bytes]:
    """Return what decides about a call whose number is known; it always returns."""
    if shape.any_of:
        test = [_instruction(_LOAD, _ARGUMENTS_AT + 8 * shape.flags), _instruction(_IF_ANY_BIT, shape.any_of, no=1)]
        return [*test, _REPORT, _PASS]
    if shape.only:
        load, last = _instruction(_LOAD, _ARGUMENTS_AT + 8 * shape.path), len(shape.only)
        tests = [_instruction(_IF_EQUAL, one, yes=last - place) for place, one in enumerate(shape.only)]
        return [load, *tests, _PASS, _REPORT]
    return [_REPORT]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def can_listen() -> str:
    """Return why calls cannot be reported here; empty when they can."""
    machine = os.uname().machine
    if os.uname().sysname != "Linux" or not tables_of(machine):
        return f"it needs Linux on x86-64 or arm64, and this is {os.uname().sysname} on {machine}"
    action = ctypes.c_uint32(_NOTIFY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(seccomp_number(machine), _GET_ACTION, 0, ctypes.byref(action)) != 0:
        return f"the kernel does not report calls ({os.strerror(ctypes.get_errno())})"
    return _why_processes_are_unseen()


def _why_processes_are_unseen() -> str:
    """Return why what processes call a path cannot be looked up: under their numbers there may be others."""
    try:
        own = os.readlink("/proc/self")
    except OSError as error:
        return f"processes cannot be looked into without /proc ({error.strerror})"
    return "" if own == str(os.getpid()) else "/proc shows the processes of another PID namespace"


def install_filter(connection: socket.socket) -> None:
    """Put this process under the filter, and send the descriptor that hears of its calls.

    Nothing in here may be reported itself, until the other side has the descriptor.
    """
    machine = os.uname().machine
    code = build_filter(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    number, listener = seccomp_number(machine), -1
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):  # the second is for kernels before 6.0
        listener = libc.syscall(number, _SET_MODE_FILTER, flags, ctypes.byref(program))
        if listener >= 0 or ctypes.get_errno() != errno.EINVAL:
            break
    if listener < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    connection.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    os.close(listener)


def receive_descriptor(connection: socket.socket) -> int:
    """Return the descriptor that the other side sent; -1 when it sent none."""
    data, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(4))
    return _first_descriptor(ancillary) if data else -1


def _first_descriptor(ancillary: Sequence[tuple[int, int, bytes]]) -> int:
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            return array.array("i", data[:4])[0]
    return -1
