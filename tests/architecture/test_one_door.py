"""Everything that changes a file goes through the disk layer: a hook in the interpreter watches every attempt."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from spec.marks import requirement

WATCHED = """
import json, os, sys
from pathlib import Path

root, state = sys.argv[1:]
CHANGES = {
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
    "os.utime", "os.setxattr", "os.removexattr", "os.mkfifo", "shutil.move", "shutil.rmtree", "shutil.copyfile",
}
seen = set()

def layer():
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name == "surehold" or name.startswith("surehold."):
            return ".".join(name.split(".")[:2])
        frame = frame.f_back
    return "outside"

def hook(event, args):
    if event == "open":
        path, mode, flags = args
        if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            return
    elif event in CHANGES:
        path = args[0]
    else:
        return
    where = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fsdecode(path)
    if where != state and not where.startswith(state + "/"):  # what is relative is taken for the root
        seen.add((layer(), "root" if where.startswith(root + "/") else "elsewhere" if where[0] == "/" else "root"))

sys.addaudithook(hook)

from surehold import Settings, open_workspace

workspace = open_workspace(root, settings=Settings(state_dir=Path(state)))
agent = workspace.session(agent="me")
agent.create("new/a.txt", "one\\n")
agent.read("new/a.txt")
agent.edit("new/a.txt", ("one", "two"))
agent.write("new/a.txt", "three\\n")
agent.move("new/a.txt", "b.txt")
agent.delete("b.txt", expected_sha256=workspace.fingerprint("b.txt"))
agent.restore(workspace.history.trash()[0].id)
agent.undo()
agent.redo()
os.link(root + "/b.txt", root + "/other-name")
seen.discard(("outside", "root"))
agent.edit("b.txt", ("three", "four"))
workspace.recover()
workspace.history.verify()
workspace.close()
ours = sorted(seen)
seen.clear()
Path(root, "control").write_text("x")
os.remove(root + "/control")
print(json.dumps({"ours": ours, "control": sorted(seen)}))
"""


@requirement("promise:one_engine:one_door")
def test_nothing_but_the_disk_layer_changes_anything_below_a_root(tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()

    command = [sys.executable, "-c", WATCHED, str(root), str(state)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    said: dict[str, Any] = json.loads(done.stdout)
    assert {layer for layer, _ in said["ours"]} == {"surehold.disk"}
    assert said["control"] == [["outside", "root"]]  # the hook would have seen it
    assert (root / "b.txt").read_bytes() == (root / "other-name").read_bytes() == b"four\n"
