"""What Surehold does, on a sample workspace, in a scripted minute. Every claim is checked before it is printed.

`make run` starts it. SUREHOLD_DEMO_FAST=1, or a pipe instead of a terminal, leaves the pauses out.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from demo_child import FILES

from surehold import Receipt, Workspace, open_workspace

if TYPE_CHECKING:
    from io import TextIOWrapper

CHILD = Path(__file__).with_name("demo_child.py")
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
PAUSES = sys.stdout.isatty() and not os.environ.get("SUREHOLD_DEMO_FAST")
BOLD, DIM, RED, GREEN, CYAN = "1", "2", "31", "32", "36"

MENU = "\ufeffMenu\r\n\r\nTea        2.50 €\r\nCoffee     3.00 €\r\nLemonade   3.20 €\nCrème brûlée 5.50 €\r\n\r\nOpen every day, 9 to 6"
SHOP = {
    "shop/cart.py": "def total(items):\n    return sum(item.price for item in items)\n",
    "shop/invoice.py": "def row(item):\n    return f'{item.name:20} {item.price:8}'\n",
    "shop/till.py": "def change(paid, price):\n    return paid - price\n",
}


def main() -> None:
    """Play all five scenes in a directory that is gone afterwards."""
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")  # a terminal without ✓ is no reason to stop
    with tempfile.TemporaryDirectory(prefix="surehold-demo-") as place:
        os.environ["XDG_STATE_HOME"] = str(Path(place, "state"))
        root = Path(place, "cafe")
        for path, text in {"menu.txt": MENU, **SHOP}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        say(paint("Surehold: file tools for AI agents that never lose an edit.", BOLD))
        say("A small workspace lies in a temporary directory. Three agents are about to work in it.")
        with open_workspace(root) as workspace:
            first = edit(workspace, root)
            race(root)
            kill(root)
            log(root)
            undo(workspace, root, first)
    say("\nThat was all. The sample workspace is gone again; the README says how to open your own.")


def edit(workspace: Workspace, root: Path) -> Receipt:
    """Scene 1: only the edited bytes change."""
    title("1  An edit changes its own bytes and no others")
    say("menu.txt is awkward: a byte order mark, CRLF but one lone LF, accents, no newline at the end.")
    before = (root / "menu.txt").read_bytes()
    code('agent.edit("menu.txt", ("Tea        2.50", "Tea        2.80"))')
    receipt = workspace.session(agent="alice").edit("menu.txt", ("Tea        2.50", "Tea        2.80"))
    show_diff(receipt.diff)
    after = (root / "menu.txt").read_bytes()
    different = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    at = different[0]
    for name, data in (("before", before), ("after", after)):
        hexes = [f"{byte:02x}" for byte in data[at - 6 : at + 8]]
        hexes[6] = paint(hexes[6], RED if data is before else GREEN, BOLD)
        say(f"    {name:<6} … {' '.join(hexes)} …")
    claim(len(different) == 1, f"{len(before)} bytes, {len(different)} is different: the 5 that became an 8.")
    return receipt


def race(root: Path) -> None:
    """Scene 2: of two processes that saw the same version, one is told."""
    title("2  Two processes race for one file")
    say("Both have read the same menu. At the same moment, each writes what it has in mind.")
    racers = {
        "alice": start("race", root, "alice", "menu.txt", "Coffee     3.00", "Coffee     3.40"),
        "bob": start("race", root, "bob", "menu.txt", "9 to 6", "9 to 8"),
    }
    for racer in racers.values():
        claim_quietly(hear(racer) == {"event": "ready"}, "a racer is at the start")
    for racer in racers.values():
        tell(racer)
    heard = {name: hear(racer) for name, racer in racers.items()}
    winner, loser = sorted(racers, key=lambda name: heard[name]["event"], reverse=True)
    refusal = heard[loser]
    say(f"  {winner}: {paint('written', GREEN)}")
    say(f"  {loser}: {paint('refused', RED)}, {refusal['kind']}: {refusal['message']}")
    say(f"       {paint('Next:', BOLD)} {refusal['action']}")
    claim(refusal["edits_still_apply"], "The refusal says that the same edit still fits, and which version to name.")
    again = hear(racers[loser])
    say(f"  {loser}: {paint('written', GREEN)}, after reading again")
    claim_quietly(all(racer.wait(30) == 0 for racer in racers.values()), "both racers end well")
    claim_quietly((heard[winner]["event"], again["event"]) == ("wrote", "wrote after reading again"), "both wrote")
    text = (root / "menu.txt").read_bytes().decode()
    claim("Coffee     3.40" in text and "9 to 8" in text, "Both edits are in the file. Nobody was overwritten unseen.")


def kill(root: Path) -> None:
    """Scene 3: a process dies between two files of one change."""
    title("3  kill -9 in the middle of a change to three files")
    say("carol renames `price` to `cents` in three files, as one change. Her process dies after the first.")
    before = contents(root)
    child = start("die", root)
    claim_quietly(child.wait(30) == -signal.SIGKILL, "the process was killed")
    half = contents(root)
    show_files(root)
    claim(
        [half[path] != before[path] for path in FILES] == [True, False, False],
        "Half done: one file is new, two are old, and staged files lie about.",
    )
    say("Now somebody opens the workspace, and Surehold looks at what the dead process left.")
    code("open_workspace(…)")
    with open_workspace(root):
        pass
    show_files(root)
    claim(contents(root) == before, "All three are as they were, byte for byte. All or nothing; nothing lies about.")


def log(root: Path) -> None:
    """Scene 4: the ledger knows all of it."""
    title("4  Everything is in the log, the refused and the interrupted too")
    command(root, "log")


def undo(workspace: Workspace, root: Path, first: Receipt) -> None:
    """Scene 5: the oldest change is taken back, the later ones stay."""
    title("5  The first edit is taken back, the later ones stay")
    code(f"agent.undo({first.change_id!r})")
    receipt = workspace.session(agent="alice").undo(first.change_id)
    show_diff(receipt.diff)
    expected = MENU.replace("Coffee     3.00", "Coffee     3.40").replace("9 to 6", "9 to 8").encode()
    claim(
        (root / "menu.txt").read_bytes() == expected,
        "Tea costs 2.50 again; coffee and the opening hours kept their edits.",
    )
    command(root, "verify")
    claim(workspace.history.verify().ok, "Every entry of the log fits the one before it, and every kept byte is there.")


def start(*words: str | Path) -> subprocess.Popen[str]:
    """Start another process of the demo."""
    words = (sys.executable, CHILD, *words)
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def hear(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next thing that a process reports."""
    assert child.stdout is not None
    return json.loads(child.stdout.readline())


def tell(child: subprocess.Popen[str]) -> None:
    """Let a process go on."""
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def command(root: Path, word: str) -> None:
    """Run the real command line."""
    print(f"  {paint(f'$ surehold {word}', CYAN)}", flush=True)
    subprocess.run((sys.executable, "-m", "surehold", word, "--root", root), check=True)
    pause(2)


def contents(root: Path) -> dict[str, bytes]:
    """Return every file, as an outside program sees it."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def show_files(root: Path) -> None:
    """List the files of the shop, with the word that each uses."""
    for path, data in contents(root / "shop").items():
        staged = path.startswith(".surehold-")
        word = "staged" if staged else "cents" if b"cents" in data else "price"
        name = f"{path[:14]}…{path[-6:]}" if staged else path
        say(f"    shop/{name:<22} {paint(word, DIM if staged else RED if word == 'cents' else GREEN)}")


def show_diff(diff: str) -> None:
    """Print a unified diff; what the eye cannot see is spelled out."""
    colours = {"-": RED, "+": GREEN, "@": CYAN}
    for row in diff.removesuffix("\n").split("\n"):
        visible = row.replace("\ufeff", "\\ufeff").replace("\r", "\\r")
        say(f"    {paint(visible, colours.get(row[:1], DIM))}", seconds=0)


def claim(is_true: bool, sentence: str) -> None:
    """Print a sentence that was checked."""
    claim_quietly(is_true, sentence)
    say(f"  {paint('✓', GREEN, BOLD)} {sentence}", seconds=1.2)


def claim_quietly(is_true: bool, sentence: str) -> None:
    """End the demo when something is not as it is said to be."""
    if not is_true:
        raise AssertionError(f"Not true: {sentence}")


def title(text: str) -> None:
    """Begin a scene."""
    pause(1.5)
    say(f"\n{paint(text, BOLD)}")


def code(text: str) -> None:
    """Show the call that is made."""
    say(f"  {paint(f'>>> {text}', CYAN)}")


def say(text: str, *, seconds: float = 0.6) -> None:
    """Print a line, and leave time to read it."""
    print(text, flush=True)
    pause(seconds)


def pause(seconds: float) -> None:
    """Wait, when somebody is watching."""
    if PAUSES:
        time.sleep(seconds)


def paint(text: str, *codes: str) -> str:
    """Colour a text, where there is colour."""
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if COLOUR else text


if __name__ == "__main__":
    main()
