"""Two names of one file lie in directories that are locked apart; its edits must still not be lost."""

import os
import threading
from pathlib import Path

from spec.marks import requirement
from surehold.errors import StaleFile
from workspaces import real_workspace

ROUNDS = 40


@requirement("promise:untouched:hard_links")
def test_edits_through_two_names_of_one_file_are_never_lost(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "b").mkdir()
    (root / "a" / "x").write_bytes(b"end\n")
    os.link(root / "a" / "x", root / "b" / "y")
    started = threading.Barrier(2)
    written = list[str]()

    with real_workspace(root, durability="none") as workspace:

        def append(path: str) -> None:
            session = workspace.session()
            started.wait()
            for number in range(ROUNDS):
                marker = f"{path[0]}{number};"
                while True:
                    try:
                        session.edit(path, ("end\n", f"{marker}\nend\n"))
                        break
                    except StaleFile:
                        continue
                written.append(marker)

        threads = [threading.Thread(target=append, args=(path,)) for path in ("a/x", "b/y")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    rows = (root / "a" / "x").read_text().splitlines()
    assert sorted(rows) == sorted([*written, "end"])
    assert (root / "a" / "x").stat().st_ino == (root / "b" / "y").stat().st_ino
