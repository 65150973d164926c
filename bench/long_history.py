"""A history of very many edits: what checking it costs, how long others wait while it is cleaned up, and what room is left.

It is filled without making the edits: half a million take a minute or more all the same. `SUREHOLD_BENCH_ENTRIES` names
another number.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from sample import edited, scratch
from table import Row
from timing import seconds

from surehold.stores.base import Blob, Call, Change, Entry
from surehold.stores.ledger_entries import utc_now, utc_timestamp
from surehold.stores.sqlite import tables
from surehold.stores.sqlite.blobs import Blobs
from surehold.stores.sqlite.database import Database
from surehold.stores.sqlite.store import SqliteStore
from surehold.text.snapshot import Meta, Version

_ENTRIES = int(os.environ.get("SUREHOLD_BENCH_ENTRIES", "500000"))
_VERIFIED = 100_000
_DAYS, _KEPT_DAYS = 60, 20
_CLEAN_UP = """
import sys
from datetime import timedelta
from pathlib import Path
from surehold.stores.sqlite.store import SqliteStore
from surehold.stores.ledger_entries import utc_now
store = SqliteStore(Path(sys.argv[1]), clock=utc_now, durability="none")
pruned = store.prune(before=(utc_now() - timedelta(days=int(sys.argv[2]))).isoformat())
assert pruned.blobs and pruned.details["archived"]
store.close()
"""
_FILES = 500
_LINES = 40
_AT_ONCE = 2_000
_META = Meta(mode=0o644, uid=1000, gid=1000, mtime_ns=1_700_000_000_000_000_000)


def rows() -> list[Row]:
    with scratch() as folder:
        build_history(folder / "verified", entries=_VERIFIED, newest=utc_now(), days=_DAYS)
        store = SqliteStore(folder / "verified", clock=utc_now, durability="none")
        start = time.process_time()
        verdict = store.verify()
        taken = time.process_time() - start
        store.close()
        assert (verdict.ok, verdict.entries) == (True, _VERIFIED), verdict
        waits = _measure_cleanup(folder)
    name = f"verify {_VERIFIED:,} entries and their versions"
    return [Row(name=name, measured=taken, unit="s", goal=6, note="CPU time"), *waits]


def _measure_cleanup(folder: Path) -> list[Row]:
    """Take the longest edit while a long history is cleaned up by another process, and how much shorter its file becomes."""
    state = folder / "state-10000-none"
    build_history(state, entries=_ENTRIES, newest=utc_now(), days=_DAYS)
    size = (state / "state.db").stat().st_size
    with edited(folder, 10_000, durability="none") as file:
        alone = sorted(seconds(file.edit, number) for number in range(300))
        during = list[float]()
        with subprocess.Popen([sys.executable, "-c", _CLEAN_UP, str(state), str(_KEPT_DAYS)]) as cleaner:
            while cleaner.poll() is None:
                during.append(seconds(file.edit, len(during)))
                time.sleep(0.01)
        assert cleaner.returncode == 0, "the clean-up failed"
    left = (state / "state.db").stat().st_size
    note = f"no fsync; {len(during):,} edits beside it, median alone {alone[150] * 1e3:.1f} ms, longest alone {alone[-1] * 1e3:.0f} ms"
    name = f"longest edit while `gc` cleans {_ENTRIES:,} entries"
    shorter = f"{size / 1e6:.0f} → {left / 1e6:.0f} MB, of {_DAYS} days {_KEPT_DAYS} are kept"
    return [
        Row(name=name, measured=max(during) * 1e3, unit="ms", goal=100.0, note=note),
        Row(name="  the file afterwards, over before", measured=left / size, goal=0.6, note=shorter),
    ]


def build_history(state_dir: Path, *, entries: int, newest: datetime, days: float) -> None:
    """Fill a state directory as so many edits of one line would have, evenly over the days before a moment."""
    database = Database(state_dir, durability="none")
    blobs = Blobs(state_dir / "blobs", fsync=False)
    edits = _make_edits(entries)
    step = timedelta(days=days) / entries
    for first in range(0, entries, _AT_ONCE):
        with database.write_transaction(durable=False) as connection:
            drafts = list[Entry]()
            for number in range(first, min(first + _AT_ONCE, entries)):
                when = utc_timestamp(newest - step * (entries - number))
                change, new = next(edits)
                blobs.insert_blobs(connection, blobs.pack_lately(new) or blobs.pack_new(connection, new), stored=when)
                call = Call(
                    tool="edit", operation="edit", writer="edit", agent=f"agent-{number % 7}", session=f"s{number % 50}"
                )
                drafts.append(
                    Entry(
                        change_id=hashlib.md5(b"%d" % number, usedforsecurity=False).hexdigest(),
                        timestamp=when,
                        call=call,
                        change=change,
                    )
                )
            tables.append_entries(connection, drafts)
    database.close()


def _make_edits(entries: int) -> Iterator[tuple[Change, list[Blob]]]:
    texts = [
        [f"    total_{file}_{line} = compute(first, second)\n" for line in range(_LINES)] for file in range(_FILES)
    ]
    last: list[Blob | None] = [None] * _FILES
    for number in range(entries):
        file = number % _FILES
        before, lines, line = last[file], texts[file], number // _FILES % _LINES
        old = lines[line]
        lines[line] = f"    total_{file}_{line} = compute(first, step_{number})\n"
        data = "".join(lines).encode()
        after = Blob(data=data, sha256=hashlib.sha256(data).hexdigest(), base=before.sha256 if before else "")
        path = f"src/package/module_{file}.py"
        diff = f"--- a/{path}\n+++ b/{path}\n@@ -{line + 1},1 +{line + 1},1 @@\n-{old}+{lines[line]}"
        change = Change(path=path, before=_version(before), after=_version(after), diff=diff)
        last[file] = after
        yield change, [before, after] if before else [after]


def _version(blob: Blob | None) -> Version | None:
    return blob and Version(sha256=blob.sha256, size=len(blob.data), meta=_META)
