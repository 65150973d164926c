"""Two agents, each in a process of its own, edit one file of one checkout at the same time. Then one of them is undone."""

import multiprocessing
import tempfile
from pathlib import Path

from surehold import Settings, open_workspace
from surehold.errors import StaleFile

EDITS = 20
AGENTS = ("ada", "bob")


def work(agent: str, root: Path, settings: Settings) -> None:
    """Tick this agent's boxes, one edit each; if the other was quicker, try again with what the refusal says."""
    with open_workspace(root, settings=settings) as workspace:
        session = workspace.session(agent=agent)
        sha256 = session.read_file("boxes.txt").sha256
        for number in range(EDITS):
            edit = (f"[ ] {agent} {number}\n", f"[x] {agent} {number}\n")
            while True:
                try:
                    sha256 = session.edit_file("boxes.txt", [edit], expected_sha256=sha256).sha256
                    break
                except StaleFile as refusal:
                    sha256 = refusal.details["retry_with_sha256"]


def main() -> None:
    """Let both work, count what is ticked, and take back what one of them did."""
    with tempfile.TemporaryDirectory() as place:
        root, settings = Path(place, "work"), Settings(state_dir=Path(place, "state"), durability="none")
        root.mkdir()
        boxes = "".join(f"[ ] {agent} {number}\n" for number in range(EDITS) for agent in AGENTS)
        (root / "boxes.txt").write_text(boxes, encoding="utf-8")
        with open_workspace(root, settings=settings) as workspace:
            processes = [multiprocessing.Process(target=work, args=(agent, root, settings)) for agent in AGENTS]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
            print(f"both worked: {ticked(root)} of {EDITS * 2} boxes")
            workspace.undo(agent="bob")
            print(f"without bob: {ticked(root, 'ada')} of ada's, {ticked(root, 'bob')} of bob's")


def ticked(root: Path, agent: str = "") -> int:
    """Return how many boxes are ticked."""
    return (root / "boxes.txt").read_text(encoding="utf-8").count(f"[x] {agent}")


if __name__ == "__main__":
    main()
