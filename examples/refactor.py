"""A refactoring of 60 files: as one patch, then file by file in one turn; each is taken back as one."""

import tempfile
from pathlib import Path

from surehold import Settings, open_workspace

FILES = 60
NAMES = [f"pkg/module_{number:02}.py" for number in range(FILES)]
SOURCE = "def helper():\n    return 1\n\n\ndef use():\n    return helper()\n"


def main() -> None:
    """Rename `helper` to `answer` everywhere, twice, and go back each time."""
    with tempfile.TemporaryDirectory() as place:
        root, state = Path(place, "work"), Path(place, "state")
        (root / "pkg").mkdir(parents=True)
        for name in NAMES:
            (root / name).write_text(SOURCE, encoding="utf-8")
        settings = Settings(state_dir=state, durability="none")  # a throw-away workspace; leave it out in yours
        with open_workspace(root, settings=settings) as workspace:
            session = workspace.session(agent="refactor")

            done = session.apply_patch(rename_patch(), reason="say what it returns")
            print(f"one patch: {renamed(root)} files, change {'made' if done.change_id else 'not made'}")
            workspace.undo(done.change_id)
            print(f"undone: {renamed(root)} files")

            with session.turn("Rename helper to answer") as turn:
                for hit in session.glob("pkg/*.py").matches:
                    seen = session.read_file(hit.path)
                    edits = [("def helper()", "def answer()"), ("return helper()", "return answer()")]
                    session.edit_file(hit.path, edits, expected_sha256=seen.sha256)
            made = workspace.changes(session=session.id, turn=turn.id)
            print(f"file by file: {renamed(root)} files, {len(made)} changes")
            undone = workspace.undo(session=session.id, turn=turn.id)
            print(f"undone as one: {renamed(root)} files, {len(undone.files)} in one change")


def rename_patch() -> str:
    """Return the patch of all files."""
    hunk = "@@\n-def helper():\n+def answer():\n@@\n-    return helper()\n+    return answer()\n"
    files = "".join(f"*** Update File: {name}\n{hunk}" for name in NAMES)
    return f"*** Begin Patch\n{files}*** End Patch\n"


def renamed(root: Path) -> int:
    """Return in how many files it is renamed."""
    return sum("def answer()" in (root / name).read_text(encoding="utf-8") for name in NAMES)


if __name__ == "__main__":
    main()
