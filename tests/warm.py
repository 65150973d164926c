"""Starts the program warm: as a fork of a process that has imported it already, which saves most of a test's time.

A warm server is a process of its own, child of the test, with its own pipes, environment, directory and end; only the
imports were made before. Whatever cannot be the same (another interpreter, settings of Python itself) starts
cold, and so does everything inside `cold()`.

As a program it is the process that forks: a request is a line of JSON with three descriptors, its answer the process id.
"""

import atexit
import ctypes
import gc
import io
import json
import os
import platform
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, NamedTuple, cast

_TESTS = Path(__file__).parent
_CLONE = {"x86_64": (56, ("parent", "child", "tls")), "aarch64": (220, ("parent", "tls", "child"))}
_CLONE_PARENT, _CHILD_SETTID, _CHILD_CLEARTID, _SIGCHLD = 0x8000, 0x01000000, 0x00200000, 17
_PR_GET_TID_ADDRESS = 40
_MESSAGE_BYTES = 1 << 17
_LAZY = ("anyio._backends._asyncio", "acp", "mcp.server.lowlevel", "mcp.server.streamable_http_manager", "uvicorn")


class _Nest:
    """The process that forks, from the side of the tests."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = _ColdPopen(
                command,
                pass_fds=[theirs.fileno()],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._socket = ours
        self._lock = threading.Lock()
        self.works = self._socket.recv(1) == b"+"
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        if self.owner == os.getpid():
            self._process.wait()

    def hatch(self, request: dict[str, Any], descriptors: Sequence[int]) -> int:
        """Return the id of a new process."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            return int(self._socket.recv(64))


_ColdPopen = subprocess.Popen
_ENVIRONMENT = dict(os.environ)
_LOCK = threading.Lock()
_nest: _Nest | None = None
_cold = 0


@contextmanager
def cold() -> Generator[None]:
    """Let everything start as it does for a user, with all of its imports."""
    global _cold  # noqa: PLW0603 - one for the process, as subprocess.Popen is
    _cold += 1
    try:
        yield
    finally:
        _cold -= 1


class _Wish(NamedTuple):
    """What CPython's `Popen` hands to the function that starts a process, after the command."""

    preexec_fn: Any
    close_fds: bool
    pass_fds: Sequence[int]
    cwd: Any
    env: Mapping[str, str] | None
    startupinfo: Any
    creationflags: int
    shell: bool
    stdin: int
    to_stdin: int
    from_stdout: int
    stdout: int
    from_stderr: int
    stderr: int
    restore_signals: bool
    gid: int | None
    gids: Any
    uid: int | None
    umask: int
    start_new_session: bool
    process_group: int

    @property
    def environment(self) -> Mapping[str, str]:
        return os.environ if self.env is None else self.env

    @property
    def ends(self) -> list[int]:
        """The descriptors of the child's standard streams; -1 means ours."""
        return [end if end != -1 else number for number, end in enumerate((self.stdin, self.stdout, self.stderr))]


class WarmPopen(_ColdPopen[Any]):
    """A `Popen` that starts the program, and programs of the tests, warm."""

    def _execute_child(self, args: Any, executable: Any, *rest: Any) -> None:
        """Fork instead of starting anew, where nothing speaks against it."""
        cold: Any = super()
        if executable is not None or len(rest) != len(_Wish._fields) or not _is_plain(args, wish := _Wish(*rest)):
            cold._execute_child(args, executable, *rest)
            return
        umask = os.umask(0)
        os.umask(umask)
        request = {
            "words": args[1:],
            "cwd": os.fspath(wish.cwd or Path.cwd()),
            "env": dict(wish.environment),
            "umask": umask,
            "new_session": wish.start_new_session,
        }
        try:
            self.pid = _the_nest().hatch(request, wish.ends)
            self._child_created = True
        finally:
            cold._close_pipe_fds(*wish[wish._fields.index("stdin") : wish._fields.index("stderr") + 1])


def _is_plain(args: Any, wish: _Wish) -> bool:
    if _cold or not isinstance(args, list | tuple):
        return False
    program, *words = cast("Sequence[Any]", args)
    if program != sys.executable or not all(isinstance(each, str) for each in (*words, *wish.environment)):
        return False
    match words:
        case ["-m", "surehold", *_]:
            pass
        case ["-c", code, *_] if "surehold" in code and "sys.modules" not in code:
            pass
        case [script, *_] if script.endswith(".py") and _TESTS in Path(script).parents:
            pass
        case _:
            return False
    special = (wish.preexec_fn, wish.pass_fds, wish.shell, wish.gid, wish.gids, wish.uid)
    if any(special) or not wish.close_fds or wish.umask != -1 or wish.process_group != -1:
        return False
    if not Path(wish.cwd or ".").is_dir():
        return False
    return _of_python(wish.environment) == _of_python(_ENVIRONMENT) and _the_nest().works


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what Python itself reads when it starts; how it buffers is made again by every child."""
    locale = next(filter(None, map(environment.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "C")
    own = {name: environment[name] for name in environment if name.startswith(("PYTHON", "COVERAGE"))}
    return {**own, "PYTHONUNBUFFERED": "", "locale": "C.UTF-8" if locale in {"C", "POSIX"} else locale}


def _the_nest() -> _Nest:
    global _nest  # noqa: PLW0603 - one for each process of the tests
    with _LOCK:
        if _nest is None or _nest.owner != os.getpid():
            _nest = _Nest()
        return _nest


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for every request; return it in the child, and nothing at the end."""
    clone = _Clone()
    connection.send(b"+" if clone.works else b"-")
    while True:
        said, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 3)
        if not said:
            return None
        request: dict[str, Any] = json.loads(said)
        child = clone.fork()
        if child:
            for descriptor in descriptors:
                os.close(descriptor)
            connection.send(str(child).encode())
            continue
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 64)
        return request


class _Clone:
    """A fork whose child is a child of our parent, which can then wait for it."""

    def __init__(self) -> None:
        self._library = ctypes.PyDLL(None, use_errno=True)
        self._library.syscall.restype = ctypes.c_long
        address = ctypes.c_void_p()
        found = self._library.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0) == 0
        self._address = address.value or 0
        self.works = found and platform.machine() in _CLONE

    def fork(self) -> int:
        number, order = _CLONE[platform.machine()]
        flags = _CLONE_PARENT | _CHILD_SETTID | _CHILD_CLEARTID | _SIGCHLD
        values = {"parent": 0, "tls": 0, "child": self._address}
        ctypes.pythonapi.PyOS_BeforeFork()
        child = self._library.syscall(
            ctypes.c_long(number), ctypes.c_long(flags), None, *(ctypes.c_void_p(values[name]) for name in order)
        )
        if child == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
        else:
            ctypes.pythonapi.PyOS_AfterFork_Parent()
        assert child >= 0, "there can be no other process"
        return child


def _preload() -> None:
    sys.path[0] = os.devnull  # the folders of the tests are no packages of anybody else
    package = import_module("surehold")
    for found in walk_packages(package.__path__, "surehold."):
        if not found.name.endswith("__main__") and not found.name.startswith(
            "surehold.adapters."
        ):  # no server has those
            with suppress(ImportError):
                import_module(found.name)
    for name in _LAZY:
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()


def _renew_streams() -> None:
    """Make the standard streams for what is at their ends now, as Python makes them when it starts."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        at_once = bool(number and os.environ.get("PYTHONUNBUFFERED"))
        raw = open(number, "wb" if number else "rb", buffering=0 if at_once else -1, closefd=False)  # noqa: SIM115 - it stays open
        how = {"line_buffering": not at_once and (number == 2 or raw.isatty()), "write_through": at_once}
        new = io.TextIOWrapper(raw, encoding=old.encoding, errors=old.errors, newline="\n", **how)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _become(request: dict[str, Any]) -> None:
    """Be the process that was asked for."""
    if request["new_session"]:
        os.setsid()
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    _renew_streams()
    try:
        _run(request)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    else:
        code = 0
    ending: tuple[Any, Any] = (threading, atexit)
    ending[0]._shutdown()
    ending[1]._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code & 0xFF)  # without taking every module apart, which costs more than most commands


def _run(request: dict[str, Any]) -> None:
    match request["words"]:
        case ["-m", module, *words]:
            sys.path[0] = request["cwd"]
            sys.argv = ["-m", *words]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *words]:
            sys.path[0] = ""
            sys.argv = ["-c", *words]
            sys.modules["__main__"] = main = ModuleType("__main__")
            exec(compile(code, "<string>", "exec"), main.__dict__)
        case [script, *words]:
            sys.path[0] = str(Path(script).parent)
            sys.argv = [script, *words]
            runpy.run_path(script, run_name="__main__")
        case other:
            raise AssertionError(other)


if __name__ == "__main__":
    _preload()
    if (wish := _serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        _become(wish)
