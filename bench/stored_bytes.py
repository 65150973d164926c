"""How many bytes the history takes: for every version of a source file, and for every small edit."""

import random
import sqlite3
from pathlib import Path

from sample import scratch, source
from table import Row

from surehold import Settings, open_workspace

_EDITS = 200
_SMALL_EDITS, _SMALL_FILES = 2_000, 20
_SOURCE = Path(__file__).parent.parent / "src" / "surehold" / "workspace" / "writer.py"


def rows() -> list[Row]:
    """Edit a line chosen by lot, as an agent would: a real source file, a new word in it each time."""
    lot = random.Random(0)
    with scratch() as folder:
        root = folder / "root"
        root.mkdir()
        lines = _SOURCE.read_text("utf-8").splitlines(keepends=True)
        (root / "code.py").write_text("".join(lines), encoding="utf-8")
        settings = Settings(state_dir=folder / "state", durability="none")
        with open_workspace(root, settings=settings) as workspace:
            session = workspace.session(agent="bench")
            session.read("code.py")
            for number in range(_EDITS):
                at = lot.randrange(len(lines))
                lines[at] = f"{lines[at].rstrip()}  # reviewed {number}: {lot.getrandbits(32):08x}\n"
                session.write("code.py", "".join(lines))
        database = sqlite3.connect(folder / "state" / "state.db")
        count, packed = database.execute("SELECT COUNT(*), SUM(packed) FROM blobs").fetchone()
        whole = sum(path.stat().st_size for path in (folder / "state").rglob("*") if path.is_file())
    size = len("".join(lines))
    note = f"{_EDITS} edits of a source file of {size / 1e3:.0f} KB, {count} versions"
    return [
        Row(name="bytes per stored version", measured=packed / count, unit="B", goal=900, note=note),
        Row(name="  state directory per edit, ledger and indexes included", measured=whole / _EDITS, unit="B"),
        _row_of_small_edits(),
    ]


def _row_of_small_edits() -> Row:
    """Edit one line of small files in turn, again and again."""
    with scratch() as folder:
        package = folder / "root" / "src" / "package"
        package.mkdir(parents=True)
        lines = source(1_000)
        texts = {f"src/package/module_{number:02}.py": "# step\n    total_0000011" for number in range(_SMALL_FILES)}
        for name in texts:
            (folder / "root" / name).write_text(lines, encoding="utf-8")
        settings = Settings(state_dir=folder / "state", durability="none")
        with open_workspace(folder / "root", settings=settings) as workspace:
            session = workspace.session(agent="bench/1.0")
            for number in range(_SMALL_EDITS):
                name = f"src/package/module_{number % _SMALL_FILES:02}.py"
                new = f"# step {number}\n    total_0000011"
                session.edit(name, (texts[name], new))
                texts[name] = new
        whole = sum(path.stat().st_size for path in (folder / "state").rglob("*") if path.is_file())
    note = f"state directory after {_SMALL_EDITS:,} edits of one line in {_SMALL_FILES} files of 1 KB"
    return Row(name="state per small edit", measured=whole / _SMALL_EDITS, unit="B", goal=900, note=note)
