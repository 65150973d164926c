"""The history in PostgreSQL on this machine: many writers with a commit of 5 ms, and one agent compared with SQLite."""

import hashlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from table import Row
from timing import interleave

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from databases.postgres_server import PostgresServer
from surehold import Settings, open_workspace
from surehold.stores.base import Begun, Blob, Call, Change, Intent
from surehold.stores.owner import current_owner
from surehold.stores.postgres import schema
from surehold.stores.postgres.address import parse_address
from surehold.stores.postgres.database import PostgresDatabase
from surehold.stores.postgres.store import PostgresStore, open_postgres_store
from surehold.text.snapshot import Version

_PROCESSES, _THREADS, _SECONDS = 2, 8, 5.0
_SLOW_COMMIT = {"fsync": "on", "commit_delay": "5000", "commit_siblings": "0"}


def rows() -> list[Row]:
    server = PostgresServer.create(settings=_SLOW_COMMIT)
    try:
        server.start()
        url = f"{server.url}/postgres"
        _set_up(url)
        many, spent = _measure_writers(url)
    finally:
        server.remove()
    server = PostgresServer.create(settings={"fsync": "on"})
    try:
        server.start()
        url = f"{server.url}/postgres"
        _set_up(url)
        alone = _compare_with_sqlite(url)
    finally:
        server.remove()
    writers = _PROCESSES * _THREADS
    return [
        Row(
            name=f"1,000 edits per second over those of {writers} writers in PostgreSQL",
            measured=1000 / many,
            goal=1.0,
            note=f"a commit takes 5 ms: {many:.0f} edits per second through the store",
        ),
        Row(
            name="processor time of the store for an edit in PostgreSQL, over 0.5 ms",
            measured=spent / 0.5e-3,
            goal=1.0,
            note=f"{spent * 1e3:.2f} ms in the client",
        ),
        Row(name="an edit of one agent, PostgreSQL over SQLite", measured=alone[0], goal=2.0, note=alone[1]),
    ]


def _set_up(url: str) -> None:
    database = PostgresDatabase(parse_address(url))
    schema.set_up(database)
    database.close()


def _measure_writers(url: str) -> tuple[float, float]:
    """Return edits per second of all writers, and the processor time that one edit takes in the client."""
    command = [sys.executable, __file__, url]
    running = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True) for number in range(_PROCESSES)
    ]
    found = [json.loads(one.communicate()[0]) for one in running]
    edits = sum(count for count, _ in found)
    return edits / _SECONDS, sum(spent for _, spent in found) / edits


def _write_through_store(url: str, process: int) -> None:
    store = open_postgres_store(parse_address(url), workspace="bench", root="/bench", host="here")
    end, counts = time.monotonic() + _SECONDS, [0] * _THREADS
    began = time.process_time()

    def work(thread: int) -> None:
        before = b""
        while time.monotonic() < end:
            after = b"x = %d\n" % counts[thread] * 200
            _edit(store, f"p{process}/t{thread}.py", f"{process}-{thread}-{counts[thread]}", before, after)
            before, counts[thread] = after, counts[thread] + 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps([sum(counts), time.process_time() - began]))
    store.close()


def _edit(store: PostgresStore, path: str, name: str, before: bytes, after: bytes) -> None:
    """Do what an edit waits for: look, begin, finish."""
    versions = [Version(sha256=hashlib.sha256(data).hexdigest(), size=len(data)) for data in (before, after)]
    change = Change(path=path, before=versions[0] if before else None, after=versions[1])
    call = Call(tool="edit", operation="edit", writer="files")
    store.look([path])
    blobs = [Blob(data=data, sha256=one.sha256) for data, one in zip((before, after), versions, strict=True) if data]
    intent = Intent(id=name, call=call, changes=(change,), owner=current_owner(), began="")
    begun = store.begin(intent, blobs, lease=10, fence=0)
    assert isinstance(begun, Begun)
    store.finish(name)


def _compare_with_sqlite(url: str) -> tuple[float, str]:
    with tempfile.TemporaryDirectory(prefix="surehold-bench-", dir="/dev/shm") as folder:
        place = Path(folder)
        for name in ("one", "other"):
            (place / name).mkdir()
            (place / name / "a.py").write_text("x = 1\n" * 200 + "n = -1\n")
        with (
            open_workspace(place / "one", settings=Settings(state_dir=place / "state")) as one,
            open_workspace(place / "other", settings=Settings(state=url)) as other,
        ):
            here, there = one.session(agent="ada"), other.session(agent="ada")
            pair = interleave(
                lambda number: here.edit("a.py", (f"n = {number - 1}\n", f"n = {number}\n")),
                lambda number: there.edit("a.py", (f"n = {number - 1}\n", f"n = {number}\n")),
                repeat=200,
            )
    return pair.ratio, f"the database is beside it: {pair.note}"


if __name__ == "__main__":
    _write_through_store(sys.argv[1], int(sys.argv[2]))
