"""Runs scripts under capture in fresh trees, takes each back and makes it again; prints one line of JSON for each.

One process for all of them: the command line itself is called, so only starting Python is saved.
"""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from capture.fingerprint import differences, take_fingerprint, without_folder_times
from capture.random_programs import random_program
from capture.scripts import all_scripts
from surehold.front.cli.main import run

_GIT = "git init -q . && git config user.email a@b && git config user.name n && git config gc.auto 0"


def make_tree(root: Path) -> None:
    """Make a tree with one of everything."""
    for folder in ("a/b", "c", "docs/x"):
        (root / folder).mkdir(parents=True)
    texts = {
        "a/f": "hi\n",
        "g": "two\nlines\n",
        "a/b/deep": "deep\n",
        "crlf.txt": "a\r\nb\r\n",
        "empty": "",
        "ro": "ro\n",
    }
    texts |= {f"docs/{number}.md": f"doc {number}\n" for number in (1, 2, 3)}
    texts |= {"docs/x/y": "y\n", "with space": "sp\n", "nl\nname": "new\nline"}
    for name, text in texts.items():
        (root / name).write_bytes(text.encode())
    Path(os.fsdecode(bytes(root) + b"/n\xffm")).write_bytes(b"n")
    (root / "big").write_bytes(os.urandom(200_000))
    with (root / "sparse").open("wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 20)
        file.write(b"x\n")
    (root / "zeros").write_bytes(bytes(100_000) + b"end\n")
    (root / "secret").write_bytes(b"not for reading\n" * 9)
    (root / "shut").mkdir()
    (root / "shut/in").write_bytes(b"in\n")
    (root / "l").symlink_to("g")
    (root / "dang").symlink_to("nowhere")
    (root / "ld").symlink_to("docs")
    (root / "g2").hardlink_to(root / "g")
    os.mkfifo(root / "pipe")
    for name in ("g", "secret", "shut"):
        os.setxattr(root / name, "user.k", b"v")
    subprocess.run(["bash", "-c", f"{_GIT} && git add docs g && git commit -qm one"], cwd=root, check=True)
    (root / ".git/info/exclude").write_text("secret\nshut\n")
    (root / "docs/1.md").write_bytes(b"doc 1\nchanged\n")
    (root / "a/f").chmod(0o600)
    (root / "ro").chmod(0o444)
    (root / "c").chmod(0o555)
    for name in ("a/f", "g", "a"):
        os.utime(root / name, ns=(1_577_836_800_123_456_789, 1_577_836_800_123_456_789))


def lock_tree(root: Path) -> None:
    """Take the rights to read some of it from everyone: only its owner gets them back."""
    (root / "secret").chmod(0)
    (root / "shut").chmod(0o300)


def call(*words: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([*words])
    return code, out.getvalue() + err.getvalue()


def find_command(name: str) -> list[str]:
    """Return a script by its name, or a random program by its seed."""
    if name.isdecimal():
        return [sys.executable, "-I", "-S", "-c", random_program(int(name))]
    return ["bash", "-c", all_scripts()[name]]


def try_command(base: Path, template: Path, command: Sequence[str]) -> dict[str, Any]:
    """Run one command in a copy of the template, undo it, redo it; return what is wrong."""
    if base.exists():
        subprocess.run(["chmod", "-R", "u+rwx", str(base)], check=False, capture_output=True)
        shutil.rmtree(base)
    base.mkdir()
    root, state, report = base / "t", base / "state", base / "report.json"
    subprocess.run(["cp", "-a", str(template), str(root)], check=True)
    lock_tree(root)
    before, where = take_fingerprint(root), ("--root", str(root), "--state-dir", str(state))
    os.chdir(root)
    code, said = call("run", *where, "--report", str(report), "--", *command)
    os.chdir(base)
    if not report.exists():
        return {"wrong": [f"no report, exit code {code}: {said}"]}
    answer, wrong = json.loads(report.read_text()), list[str]()
    after = take_fingerprint(root)
    if answer["change_id"] is None:
        wrong += [
            f"not recorded: {one}" for one in differences(without_folder_times(before), without_folder_times(after))
        ]
    else:
        for verb, expected in (("undo", before), ("redo", after)):
            result, text = call(verb, *where, answer["change_id"])
            wrong += [f"{verb}: {text}"] if result else []
            wrong += [f"{verb}: {one}" for one in differences(expected, take_fingerprint(root))]
    wrong += [f"left behind: {one}" for one in (state / "runs").glob("*")]
    return {"report": answer, "wrong": wrong, "said": said}


def main() -> None:
    base, names = Path(sys.argv[1]), json.loads(sys.argv[2])
    os.environ["HOME"] = str(base)
    template = base / "template"
    template.mkdir()
    make_tree(template)
    for name in names:
        result = {"name": name, **try_command(base / "work", template, find_command(name))}
        sys.__stdout__.write(json.dumps(result) + "\n")  # type: ignore[union-attr]
        sys.__stdout__.flush()  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
