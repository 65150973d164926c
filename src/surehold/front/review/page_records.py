"""What a workspace keeps about its review pages: the key of its cookies, the last port, and the pages that are open now.

It is in the state directory, for the person alone. A record is locked as long as its page is served, so a page that ended
in any way is known as such.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

_DIRECTORY = "review"
_KEY_BYTES = 32
_ANSWER_SECONDS = 10.0
_RECORD_ENDING = ".page"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRecord:
    """A review page that is served now."""

    url: str
    """Where it is, without anything secret."""
    door: str
    """What gets a code for signing in."""
    pid: int
    answers: bool = True
    """Whether agents ask there."""


def load_key(state_dir: Path) -> bytes:
    """Return the key of this workspace's cookies; make it when there is none."""
    path = open_page_directory(state_dir) / "key"
    with suppress(FileExistsError):
        temporary = path.with_name(f"key.{secrets.token_hex(8)}")
        temporary.write_bytes(secrets.token_bytes(_KEY_BYTES))
        temporary.chmod(0o600)
        try:
            os.link(temporary, path)  # whole, or not at all
        finally:
            temporary.unlink()
    return path.read_bytes()


def last_port(state_dir: Path) -> int:
    """Return where the page of this workspace was served last, so that an open one finds it again; 0 if it never was."""
    try:
        return int((state_dir / _DIRECTORY / "port").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


@contextmanager
def announce_page(state_dir: Path, record: PageRecord, *, port: int) -> Generator[None]:
    """Let `surehold review` find a page for as long as it is served."""
    directory = open_page_directory(state_dir)
    (directory / "port").write_text(f"{port}", encoding="ascii")
    path = directory / f"{secrets.token_hex(8)}{_RECORD_ENDING}"
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, json.dumps(asdict(record)).encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def list_pages(state_dir: Path) -> list[PageRecord]:
    """Return the pages that are served now, the newest first; those where agents ask before the others."""
    found = list[tuple[float, PageRecord]]()
    for path in (state_dir / _DIRECTORY).glob(f"*{_RECORD_ENDING}"):
        with suppress(OSError, ValueError, TypeError):  # it ended in this moment, or is just being written
            if record := _read_if_locked(path):
                found.append((path.stat().st_mtime, record))
    found.sort(key=lambda one: (one[1].answers, one[0]), reverse=True)
    return [record for _, record in found]


def _read_if_locked(path: Path) -> PageRecord | None:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return PageRecord(**json.loads(file.read()))
        if text := file.read():  # empty while its page is about to lock it
            json.loads(text)
            path.unlink(missing_ok=True)
    return None


def open_page_directory(state_dir: Path) -> Path:
    directory = state_dir / _DIRECTORY
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def ask_page(record: PageRecord, path: str) -> str:
    """Return what a page that is served answers to a program of the same person; empty if it does not."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlencode, urlsplit

    place = urlsplit(record.url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("POST", path, urlencode({"door": record.door}))
        answer = connection.getresponse()
        text = answer.read().decode("ascii", "replace")
    except (OSError, HTTPException):
        return ""
    else:
        return text if answer.status == 200 else ""  # noqa: PLR2004 - OK
    finally:
        connection.close()


def count_questions(state_dir: Path) -> int:
    """Return how many questions are open that only the servers of the pages know of: those of commands."""
    counts = (ask_page(record, "/review/count") for record in list_pages(state_dir) if record.answers)
    return sum(int(one) for one in counts if one.isdecimal())
