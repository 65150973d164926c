"""The tasks: each takes one server, and returns what is seen as a cell of the table."""

import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median

from mcp_client import McpClient, Refused, connected, seconds_to_list

from compare.contestants import Contestant, LineEdit, Unable

_STARTS = 7
_CALLS = 60
_EDITS_EACH = 60
_TRIES = 200
_KILLS = 40
_FILES = 1_000
_NOTHING = "–"
_CRLF = b"alpha\r\nbeta\r\ngamma\r\n"
_KEPT = {
    "CRLF": (_CRLF, _CRLF.replace(b"beta", b"BETA")),
    "mixed line ends": (b"alpha\r\nbeta\ngamma\r\n", b"alpha\r\nBETA\ngamma\r\n"),
    "byte order mark": (b"\xef\xbb\xbfalpha\nbeta\ngamma\n", b"\xef\xbb\xbfalpha\nBETA\ngamma\n"),
    "a Latin-1 byte": (b"alpha na\xefve\nbeta\ngamma\n", b"alpha na\xefve\nBETA\ngamma\n"),
    "no line end at the end": (b"alpha\nbeta\ngamma", b"alpha\nBETA\ngamma"),
}


class Place:
    """A folder with a root for one server."""

    def __init__(self, folder: Path, contestant: Contestant) -> None:
        self.root, self.state, self.contestant = folder / "root", folder / "state", contestant
        shutil.rmtree(folder, ignore_errors=True)
        self.root.mkdir(parents=True)

    def connect(self) -> McpClient:
        return McpClient(self.contestant.command(self.root, self.state), cwd=self.root)

    def put(self, name: str, text: str) -> Path:
        (self.root / name).write_text(text, encoding="utf-8")
        return self.root / name


def start(place: Place) -> str:
    """From the start of the process to the answer to tools/list."""

    command = place.contestant.command(place.root, place.state)
    return _milliseconds([seconds_to_list(command, place.root) for _ in range(_STARTS + 1)][1:])


def memory(place: Place) -> str:
    """After the first call."""
    file, client = place.put("a.txt", "alpha\n"), place.connect()
    place.contestant.read(client, file)
    found = client.memory("VmRSS")
    client.close()
    return f"{found:.0f} MB"


def list_names(place: Place) -> str:
    """A directory of 1,000 files, with their sizes where the tool has them."""
    for number in range(_FILES):
        place.put(f"file{number:04d}.txt", "x\n")
    return _timed(place, lambda client: place.contestant.list_names(client, place.root))


def read(place: Place) -> str:
    """A file of 10 KB."""
    file = place.put("a.txt", _lines(200))
    return _timed(place, lambda client: place.contestant.read(client, file))


def search(place: Place) -> str:
    """A word that is in one of 1,000 files."""
    for number in range(_FILES):
        place.put(f"file{number:04d}.txt", _lines(20))
    place.put("file0777.txt", _lines(20) + "needle\n")
    return _timed(place, lambda client: _expect("needle", place.contestant.search(client, place.root, "needle")))


def edit(place: Place) -> str:
    """One line of a file of 10 KB."""
    return _time_edits(place, 200)


def edit_large(place: Place) -> str:
    """One line of a file of 1 MB."""
    return _time_edits(place, 20_000)


def two_writers(place: Place) -> str:
    """Two servers, two clients, one file: 60 edits each; a refused edit is tried again."""
    rows = [f"{who}-{number:03d} todo" for number in range(_EDITS_EACH) for who in "ab"]
    file = place.put("a.txt", "".join(f"{row}\n" for row in rows))
    confirmed = dict[str, list[str]]()
    clients = {who: place.connect() for who in "ab"}

    def work(who: str) -> None:
        confirmed[who] = []
        for row in [row for row in rows if row.startswith(who)]:
            if _edit_until_done(place.contestant, clients[who], file, rows.index(row) + 1, row):
                confirmed[who].append(row.replace("todo", "done"))

    threads = [threading.Thread(target=work, args=(who,)) for who in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients.values():
        client.close()
    found = set(file.read_text(encoding="utf-8", errors="replace").splitlines())
    every = [row for rows in confirmed.values() for row in rows]
    lost = sum(row not in found for row in every)
    return f"{lost} of {len(every)} confirmed edits lost"


def _edit_until_done(contestant: Contestant, client: McpClient, file: Path, number: int, row: str) -> bool:
    for _ in range(_TRIES):
        try:
            contestant.edit(client, file, LineEdit(number=number, old=row, new=row.replace("todo", "done")))
        except (Refused, ValueError, KeyError):
            continue
        return True
    return False


def kills(place: Place) -> str:
    """The server is killed while it saves 4 MB: the file must be the old one or the new one."""
    old, new = _lines(80_000), _lines(80_000).replace("line", "LINE")
    file, chance, torn = place.root / "a.txt", random.Random(1), 0
    place.put("a.txt", old)
    with connected(place.contestant.command(place.root, place.state), cwd=place.root) as client:
        place.contestant.read(client, file)
        usual = _seconds(lambda: place.contestant.write(client, file, new))
    for _ in range(_KILLS):
        place.put("a.txt", old)
        client = place.connect()
        place.contestant.read(client, file)
        timer = threading.Timer(chance.uniform(0, 1.1) * usual, client.process.send_signal, (signal.SIGKILL,))
        timer.start()
        with suppress(Refused, OSError, ValueError):
            place.contestant.write(client, file, new)
        timer.join()
        client.close()
        torn += file.read_bytes() not in (old.encode(), new.encode())
    return f"{torn} of {_KILLS} torn"


def kept(place: Place) -> str:
    """Change one word: is every other byte as before?"""
    changed, refused = list[str](), list[str]()
    for name, (before, after) in _KEPT.items():
        file = place.root / "a.txt"
        file.write_bytes(before)
        client = place.connect()
        try:
            place.contestant.edit(client, file, LineEdit(number=2, old="beta", new="BETA"))
        except (Refused, ValueError, KeyError):
            (changed if file.read_bytes() != before else refused).append(name)
        else:
            if file.read_bytes() != after:
                changed.append(name)
        client.close()
    words = [f"changes bytes: {', '.join(changed)}"] if changed else []
    words += [f"refuses: {', '.join(refused)}"] if refused else []
    return "; ".join(words) or f"all {len(_KEPT)} kept"


TASKS: dict[str, Callable[[Place], str]] = {
    "start to `tools/list`": start,
    "memory after the first call": memory,
    "list 1,000 files": list_names,
    "read 10 KB": read,
    "search 1,000 files": search,
    "edit 10 KB": edit,
    "edit 1 MB": edit_large,
    "two writers": two_writers,
    "killed while it saves 4 MB": kills,
    "bytes kept by an edit": kept,
}


def _time_edits(place: Place, rows: int) -> str:
    file, middle = place.put("a.txt", _lines(rows)), rows // 2
    text = _lines(rows).splitlines()[middle - 1]
    client, taken = place.connect(), list[float]()
    for number in range(_CALLS // 2):
        new = f"{_lines(rows).splitlines()[middle - 1]} {number:04d}"
        began = time.perf_counter()
        place.contestant.edit(client, file, LineEdit(number=middle, old=text, new=new))
        taken.append(time.perf_counter() - began)
        text = new
    client.close()
    assert text in file.read_text(encoding="utf-8")
    return _milliseconds(taken)


def _timed(place: Place, work: Callable[[McpClient], object]) -> str:
    client = place.connect()
    try:
        work(client)
        return _milliseconds([_seconds(lambda: work(client)) for _ in range(_CALLS)])
    except Unable:
        return _NOTHING
    except Refused as error:
        return f"fails: {str(error)[:80]}"
    finally:
        client.close()


def _expect(word: str, text: str) -> None:
    if word not in text:
        raise Refused(f"`{word}` was not found")


def _lines(count: int) -> str:
    return "".join(f"line {number:07d} of the file, and some more of it\n" for number in range(count))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _milliseconds(taken: list[float]) -> str:
    return f"{median(taken) * 1e3:.1f} ms"
