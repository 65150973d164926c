"""A scripted agent works in a sample workspace, through a real `surehold mcp` process. Every claim is checked.

`make run` starts it. SUREHOLD_DEMO_FAST=1, or a pipe instead of a terminal, leaves the pauses out.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

from client import Client, Json, data_of
from stage import BOLD, CYAN, DIM, claim, paint, pause, say, show_answer, title

if TYPE_CHECKING:
    from io import TextIOWrapper

MENU = "\ufeffMenu\r\n\r\nTea        2.50 €\r\nCoffee     3.00 €\r\nLemonade   3.20 €\nCrème brûlée 5.50 €\r\n\r\nOpen every day, 9 to 6"
SHOP = {
    "shop/cart.py": "def total(items):\n    return sum(item.price for item in items)\n",
    "shop/invoice.py": "def row(item):\n    return f'{item.name:20} {item.price:8}'\n",
    "shop/till.py": "def change(paid, price):\n    return paid - price\n",
}
RECIPES = {f"recipes/{number:03}.txt": f"Recipe {number}\nserves 4\n" for number in range(200)}
PATCH = """\
*** Begin Patch
*** Update File: shop/cart.py
@@
-    return sum(item.price for item in items)
+    return sum(item.cents for item in items)
*** Update File: shop/invoice.py
@@
-    return f'{item.name:20} {item.price:8}'
+    return f'{item.name:20} {item.cents:8}'
*** Update File: shop/till.py
@@
-    return price - paid
+    return cents - paid
*** End Patch
"""
TILL_AS_IT_IS = """\
-def change(paid, price):
-    return paid - price
+def change(paid, cents):
+    return paid - cents
"""


def main() -> None:
    """Play all scenes in a temporary directory."""
    cast("TextIOWrapper", sys.stdout).reconfigure(errors="replace")  # go on where a terminal has no ✓
    with tempfile.TemporaryDirectory(prefix="surehold-demo-") as place:
        os.environ["XDG_STATE_HOME"] = str(Path(place, "state"))
        root = Path(place, "cafe")
        for path, text in {"menu.txt": MENU, **SHOP, **RECIPES}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        say(paint("Surehold: file tools for AI agents that never lose an edit.", BOLD))
        say("A sample workspace, cafe/, is in a temporary directory. A scripted agent works in it, over MCP.")
        with connect(root) as agent:
            first = edit(agent, root)
            stale(agent, root, first["afterSha256"])
            patch(agent, root)
        kill(root)
        with Client(root, name="agent") as agent:
            settled(agent, root)
            trash(agent, root)
        look_back(root, first["changeId"])
    say("\nDone. The sample workspace is deleted; docs/clients.md says how to connect your own agent.")


def connect(root: Path) -> Client:
    """Scene 1: a client starts the server, and lists its tools."""
    title("1  An agent connects")
    command("mcp cafe")
    agent = Client(root, name="agent")
    say(f"    {paint(agent.headline(), DIM)}")
    names = [tool["name"] for tool in agent.list_tools()]
    say(f"    {paint(', '.join(names), DIM)}")
    claim("edit_file" in names, f"{agent.greeting['serverInfo']['title']} answers, with {len(names)} tools.")
    return agent


def edit(agent: Client, root: Path) -> Json:
    """Scene 2: only the edited bytes change."""
    title("2  Read, then edit: only the named bytes change")
    say("menu.txt is difficult: a byte order mark, CRLF but one lone LF, accents, no newline at the end.")
    seen = call(agent, "read_file", path="menu.txt")
    before = (root / "menu.txt").read_bytes()
    edits = [{"oldText": "Tea        2.50", "newText": "Tea        2.80"}]
    done = call(agent, "edit_file", path="menu.txt", expectedSha256=seen["sha256"], edits=edits, reason="tea is dearer")
    after = (root / "menu.txt").read_bytes()
    different = sum(old != new for old, new in zip(before, after, strict=True))
    claim(different == 1, f"{len(before)} bytes, {different} is different: the 5 that became an 8.")
    return done


def stale(agent: Client, root: Path, sha256: str) -> None:
    """Scene 3: an edit that is based on an old version is refused, and one retry suffices."""
    title("3  A person saves the file between two edits")
    menu = root / "menu.txt"
    menu.write_bytes(menu.read_bytes().replace(b"Coffee     3.00", b"Coffee     3.10"))
    say("A person changes the price of coffee in an editor. The agent does not know, and edits the hours.")
    edits = [{"oldText": "9 to 6", "newText": "9 to 8"}]
    refusal = refused(agent, "edit_file", path="menu.txt", expectedSha256=sha256, edits=edits)
    claim(refusal["kind"] == "stale_file", "Refused as stale_file. It says what changed, and that the edit still fits.")
    call(agent, "edit_file", path="menu.txt", expectedSha256=refusal["details"]["retryWithSha256"], edits=edits)
    text = menu.read_bytes().decode()
    claim(
        "Coffee     3.10" in text and "9 to 8" in text,
        "Both changes are in the file. No unseen change was overwritten.",
    )


def patch(agent: Client, root: Path) -> None:
    """Scene 4: a patch of three files is one change."""
    title("4  A patch for three files: all or nothing")
    before = contents(root / "shop")
    say("The agent renames `price` to `cents`. Its third hunk does not match the file.")
    refusal = refused(agent, "apply_patch", patch=PATCH)
    claim(
        refusal["kind"] == "patch_apply_error" and contents(root / "shop") == before,
        "Two files would have been fine; none was touched.",
    )
    say("The agent corrects its patch.")
    corrected = PATCH.replace("-    return price - paid\n+    return cents - paid\n", TILL_AS_IT_IS)
    done = call(agent, "apply_patch", patch=corrected, reason="say what the number is")
    after = contents(root / "shop")
    claim(
        len(done["changedFiles"]) == 3 and all(b"cents" in data and b"price" not in data for data in after.values()),
        "All three files are changed, as one change that can be undone as one.",
    )


def kill(root: Path) -> None:
    """Scene 5: a server dies between two files of one change."""
    title("5  kill -9 in the middle of a patch for two hundred files")
    say("The agent doubles every recipe. As soon as the first file is new, its server is killed.")
    for _ in range(20):
        if kill_at_the_first_file(root):
            break
        # The patch was quicker than the kill: undo it and try again.
        subprocess.run((sys.executable, "-m", "surehold", "undo", "--root", root), check=True, capture_output=True)
    found = contents(root / "recipes")
    staged = [found.pop(path) for path in list(found) if path.startswith(".surehold-")]
    new = sum(b"serves 8" in data for data in found.values())
    claim(
        0 < new < len(found) == len(RECIPES) and bool(staged),
        f"Half done: {new} recipes are new, {len(found) - new} are old, and staged files are left.",
    )


def kill_at_the_first_file(root: Path) -> bool:
    """Send a patch, kill the server once the first file is new, and tell whether files were left half done."""
    rows = "".join(f"*** Update File: {path}\n@@\n-serves 4\n+serves 8\n" for path in RECIPES)
    agent = Client(root, name="agent")
    call = {"name": "apply_patch", "arguments": {"patch": f"*** Begin Patch\n{rows}*** End Patch\n"}}
    agent.begin("tools/call", call)
    first = root / next(iter(RECIPES))
    while b"serves 8" not in first.read_bytes():
        if agent.process.poll() is not None:
            raise AssertionError("Not true: the server lives until it is killed")
        time.sleep(0.0005)
    agent.kill()
    return not all(b"serves 8" in (root / path).read_bytes() for path in RECIPES)


def settled(agent: Client, root: Path) -> None:
    """Scene 5, second half: the next server has cleaned up before it answers a call."""
    say("The next server starts. Before it answers its first call, it cleans up after the dead one.")
    call(agent, "read_file", path=next(iter(RECIPES)))
    claim(
        contents(root / "recipes") == {path.removeprefix("recipes/"): text.encode() for path, text in RECIPES.items()},
        "All two hundred recipes are as they were, byte for byte, and no temporary file is left.",
    )


def trash(agent: Client, root: Path) -> None:
    """Scene 6: a deleted file comes back."""
    title("6  Deleted, and back")
    till = root / "shop" / "till.py"
    before = till.read_bytes()
    seen = call(agent, "read_file", path="shop/till.py")
    gone = call(agent, "delete_file", path="shop/till.py", expectedSha256=seen["sha256"])
    claim(not till.exists(), "The file is gone from the workspace, and is in the trash.")
    call(agent, "restore_file", trashId=gone["trashId"])
    claim(till.read_bytes() == before, "It is back, byte for byte.")


def look_back(root: Path, first: str) -> None:
    """Scene 7: a person looks at what the agent did, and undoes one change."""
    title("7  What you see of it, at any time later")
    run(root, "log", "menu.txt")
    run(root, "log", "shop")
    run(root, "show", first)
    run(root, "undo", first)
    expected = MENU.replace("Coffee     3.00", "Coffee     3.10").replace("9 to 6", "9 to 8").encode()
    claim(
        (root / "menu.txt").read_bytes() == expected,
        "Tea costs 2.50 again. Coffee and the opening hours, which changed later, stayed.",
    )
    claim(
        run(root, "verify") == 0,
        "The log is intact: every entry fits the one before it, and every stored byte is there.",
    )


def call(agent: Client, tool: str, **arguments: object) -> Json:
    """Call a tool that succeeds; show the call and what a model reads, and return the data."""
    result = shown(agent, tool, arguments)
    return data_of(result)["data"]


def refused(agent: Client, tool: str, **arguments: object) -> Json:
    """Call a tool that refuses; show the call and what a model reads, and return the error."""
    result = shown(agent, tool, arguments, refused=True)
    return data_of(result)["error"]


def shown(agent: Client, tool: str, arguments: Json, *, refused: bool = False) -> Json:
    """Call a tool, and show both sides of it."""
    brief = {name: f"{value[:8]}…" if name == "expectedSha256" else value for name, value in arguments.items()}
    words = brief.pop("patch", "")
    facts = json.dumps(brief, ensure_ascii=False) if brief else ""
    say(f"  {paint(f'→ {tool} {facts}'.rstrip(), CYAN)}")
    for row in words.splitlines():
        say(f"      {paint(row, CYAN)}", seconds=0.05)
    result = agent.call(tool, arguments)
    text = result["content"][0]["text"]
    if result["isError"] != refused:
        raise AssertionError(f"Not true: {tool} {'is refused' if refused else 'succeeds'}\n{text}")
    show_answer(text, refused=refused)
    return result


def run(root: Path, *words: str) -> int:
    """Run the real command line, and return its exit code."""
    command(" ".join(words))
    done = subprocess.run((sys.executable, "-m", "surehold", *words, "--root", root), check=False)
    pause(1.5)
    return done.returncode


def command(words: str) -> None:
    """Show what is typed."""
    say(f"  {paint(f'$ surehold {words}', CYAN)}")


def contents(root: Path) -> dict[str, bytes]:
    """Return every file, as an outside program sees it."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


if __name__ == "__main__":
    main()
