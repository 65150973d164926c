"""The real server, as a process of its own, over standard input and output or over HTTP."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from waiting import HANG_SECONDS, wait_until

HOME = Path(__file__).parents[2]
THROUGH_SDK = os.environ.get("SUREHOLD_STDIO") == "sdk"
"""Standard input and output are served by the protocol's own library, for comparison."""


def _find_program() -> Path:
    """Return the command; clients and hosts do not hand our environment on, so that it must set the variable itself."""
    program = Path(sys.executable).with_name("surehold")
    if not THROUGH_SDK:
        return program
    script = Path(tempfile.mkdtemp(prefix="surehold-sdk-")) / "surehold"
    script.write_text(f'#!/bin/sh\nSUREHOLD_STDIO=sdk exec "{program}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


SUREHOLD = _find_program()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A root to serve, a private state directory beside it, and the program that serves it."""

    folder: Path
    program: Path = SUREHOLD

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def command(self) -> tuple[str, ...]:
        """The command that serves over stdio."""
        return (str(self.program), "mcp", str(self.root), "--state-dir", str(self.folder / "state"))


def new_place(folder: Path, *, program: Path = SUREHOLD) -> Place:
    """Make an empty root in a new folder."""
    place = Place(folder=folder, program=program)
    place.root.mkdir(parents=True)
    return place


@contextmanager
def http_server(place: Place) -> Generator[str]:
    """Serve a place over HTTP on a free port of the loopback; yield the address."""
    port = free_port()
    with listening((*place.command, "--meta", "--http", f"127.0.0.1:{port}"), port, log=place.folder / "http.log"):
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def listening(command: tuple[str, ...], port: int, *, log: Path) -> Generator[None]:
    """Run a command that listens on a port until the end; what it says goes to a file."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment())
    try:
        _wait_until_listening(process, port, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def environment() -> dict[str, str]:
    """Return the environment of this process, with the tests on the path for servers that live there."""
    return {**os.environ, "PYTHONPATH": str(HOME / "tests")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    wait_until(lambda: process.poll() is not None or _is_listening(port), "the server listens")
    if process.poll() is not None:
        raise RuntimeError(f"The server does not listen: {log.read_text(errors='replace')[-2000:]}")


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
