"""Reading a large file and naming every line of it, against the least that could be done with it."""

import hashlib
from pathlib import Path

from sample import scratch
from table import Row
from timing import interleave

from surehold import Settings, Workspace, open_workspace

_LINES = 1_000_000
_REPEAT = 9


def rows() -> list[Row]:
    found = list[Row]()
    with scratch() as folder:
        root = folder / "root"
        root.mkdir()
        lines = [f"line {number:08d} of a file with a million" for number in range(_LINES)]
        texts = {
            "ASCII": "\n".join(lines) + "\n",
            "UTF-8": "\n".join(lines).replace("file", "fıle") + "\n",
            "CRLF": "\r\n".join(lines) + "\r\n",
            "trailing blanks": "\n".join(lines).replace("7 of a file with a million", "7 of a file with blanks   ")
            + "\n",
        }
        with open_workspace(root, settings=Settings(state_dir=folder / "state")) as workspace:
            for name, text in texts.items():
                path = root / f"{name}.txt"
                path.write_text(text, encoding="utf-8", newline="")
                found.append(_row(name, path, workspace))
    return found


def _row(name: str, path: Path, workspace: Workspace) -> Row:
    def baseline(_: int) -> None:
        data = path.read_bytes()
        hashlib.sha256(data).hexdigest()
        data.splitlines()

    def subject(_: int) -> None:
        snapshot = workspace.read(path.name)
        assert len(snapshot.digests) == _LINES
        assert snapshot.sha256

    pair = interleave(baseline, subject, repeat=_REPEAT if name == "ASCII" else 5)
    size = path.stat().st_size / 1e6
    return Row(
        name=f"read + sha256 + every line digest, {size:.0f} MB {name}",
        measured=pair.ratio,
        goal=2.5 if name in {"ASCII", "UTF-8"} else None,
        note=f"of read + sha256 + splitlines: {pair.note}",
    )
