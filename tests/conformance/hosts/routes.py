"""The ways in which real hosts change files: which of them are recorded, and whether undo restores the tree.

Each host is set up by `surehold setup`, and its scripted model takes one route after the other, with the host's own tools.
"""

import json
import os
import stat
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.hosts.checks import host_environment
from conformance.hosts.model import Call, Model, Script, plain, serve
from conformance.hosts.table import Start, codex_start, host_program
from conformance.report import Check, outcome
from conformance.servers import HOME, SUREHOLD

PAGE = HOME / "docs" / "coverage.md"
TRIED = "\n## Tried with real hosts\n"
"""Where our part of the page begins; the rest is written by `scripts/host_coverage.py`."""
UNDONE = "undo of the session restores the tree"
SHELL_ROUTES = {
    "shell: sed -i": ("sed -i s/one/two/ sed.txt", "sed.txt"),
    "shell: perl -pi": ("perl -pi -e s/one/two/ perl.txt", "perl.txt"),
    "shell: rm": ("rm rm.txt", "rm.txt"),
    "shell: rm -rf of a directory": ("rm -rf folder", "folder/inside.txt"),
    "shell: heredoc": ("cat > heredoc.txt <<'END'\ntwo\nEND", "heredoc.txt"),
    "shell: append": ("echo two >> append.txt", "append.txt"),
    "shell: python": ("python3 -c \"open('python.txt', 'w').write('two')\"", "python.txt"),
    "shell: git": ("git checkout -q -b other && echo two > git.txt", "git.txt"),
    "shell: mv": ("mv mv.txt moved.txt", "mv.txt"),
    "shell: cp over": ("cp sed.txt cp.txt", "cp.txt"),
    "shell: truncate": ("truncate -s 0 truncate.txt", "truncate.txt"),
    "shell: chmod": ("chmod 755 chmod.txt", "chmod.txt"),
    "shell: tee": ("echo two | tee tee.txt >/dev/null", "tee.txt"),
    "shell: find -delete": ("find . -name found.txt -delete", "found.txt"),
    "shell: symbolic link": ("ln -s sed.txt link", "link"),
}
_NAMES = (
    "edit",
    "write",
    "sed",
    "perl",
    "rm",
    "heredoc",
    "append",
    "python",
    "git",
    "mv",
    "cp",
    "truncate",
    "chmod",
    "back",
    "tee",
    "found",
    "agent",
    "agent-rm",
)
_NOTEBOOK: dict[str, Any] = {
    "cells": [
        {"cell_type": "code", "execution_count": None, "id": "c1", "metadata": {}, "outputs": [], "source": ["one"]}
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
_PATIENCE_SECONDS = 1200
_SUBAGENT_WORD = "in-the-subagent"
"""What the prompt of a subagent has: its model is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    name: str
    calls: tuple[Call, ...]
    path: str
    inner: tuple[Call, ...] = ()
    """What the subagent does that the host starts; all routes share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedHost:
    """A host, how it is started, and its routes through a directory."""

    name: str
    key: str
    start: Callable[[str, Path], Start]
    routes: Callable[[Path], list[Route]]


def _claude_start(url: str, _home: Path) -> Start:
    tools = ("--allowedTools", "Bash", "Edit", "Write", "Read", "NotebookEdit", "ToolSearch", "Agent")
    return Start(
        command=(host_program("claude"), "-p", "Follow the script.", "--model", "claude-sonnet-4-5", *tools),
        variables={
            "ANTHROPIC_API_KEY": "scripted",
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


def _claude_routes(root: Path) -> list[Route]:
    def on(tool: str, name: str, **more: str) -> Call:
        return Call(tool=tool, arguments={"file_path": str(root / name), **more})

    background = {"command": "sleep 1; echo two > back.txt", "run_in_background": True}
    cell = {"notebook_path": str(root / "book.ipynb"), "cell_id": "c1", "new_source": "two"}
    task = {"description": "a part of it", "prompt": f"Do {_SUBAGENT_WORD}.", "subagent_type": "general-purpose"}
    agent = Call(tool="Agent", arguments={**task, "run_in_background": False})
    notebook = Call(tool="NotebookEdit", arguments=cell)
    load = Call(tool="ToolSearch", arguments={"query": "select:NotebookEdit", "max_results": 1})
    wait = Call(tool="Bash", arguments={"command": "until grep -q two back.txt; do sleep 0.2; done"})
    return [
        Route(
            name="Edit",
            calls=(on("Read", "edit.txt"), on("Edit", "edit.txt", old_string="one", new_string="two")),
            path="edit.txt",
        ),
        Route(name="Write, new file", calls=(on("Write", "new/file.txt", content="two\n"),), path="new/file.txt"),
        Route(
            name="Write, over a file",
            calls=(on("Read", "write.txt"), on("Write", "write.txt", content="two\n")),
            path="write.txt",
        ),
        *(
            Route(name=name, calls=(Call(tool="Bash", arguments={"command": command}),), path=path)
            for name, (command, path) in SHELL_ROUTES.items()
        ),
        Route(name="shell: in the background", calls=(Call(tool="Bash", arguments=background), wait), path="back.txt"),
        Route(
            name="subagent: Edit",
            calls=(agent,),
            inner=(on("Read", "agent.txt"), on("Edit", "agent.txt", old_string="one", new_string="two")),
            path="agent.txt",
        ),
        Route(
            name="subagent: shell",
            calls=(),
            inner=(Call(tool="Bash", arguments={"command": "rm agent-rm.txt"}),),
            path="agent-rm.txt",
        ),
        Route(name="NotebookEdit", calls=(load, on("Read", "book.ipynb"), notebook), path="book.ipynb"),
    ]


def _gemini_start(url: str, home: Path) -> Start:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(settings), encoding="utf-8")
    return Start(
        command=(
            host_program("gemini"),
            "-m",
            "gemini-2.5-flash",
            "--approval-mode",
            "yolo",
            "-p",
            "Follow the script.",
        ),
        variables={"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": url},
    )


def _gemini_routes(_root: Path) -> list[Route]:
    def on(tool: str, name: str, **more: str) -> Call:
        return Call(tool=tool, arguments={"file_path": name, **more})

    edit = on("replace", "edit.txt", old_string="one", new_string="two", instruction="change it")
    return [
        Route(name="replace", calls=(on("read_file", "edit.txt"), edit), path="edit.txt"),
        Route(
            name="write_file, new file", calls=(on("write_file", "new/file.txt", content="two\n"),), path="new/file.txt"
        ),
        Route(
            name="write_file, over a file", calls=(on("write_file", "write.txt", content="two\n"),), path="write.txt"
        ),
        *(
            Route(name=name, calls=(Call(tool="run_shell_command", arguments={"command": command}),), path=path)
            for name, (command, path) in SHELL_ROUTES.items()
        ),
    ]


def _codex_start(url: str, home: Path) -> Start:
    start = codex_start(url, home)
    config = home / ".codex" / "config.toml"
    trusted = f'[projects."{home.parent / "root"}"]\ntrust_level = "trusted"\n'
    settings = config.read_text(encoding="utf-8").replace("gpt-5.1", "gpt-5.5")  # which has a tool for patches
    config.write_text(f"{settings}\n{trusted}", encoding="utf-8")
    *command, prompt = start.command
    return replace(start, command=(*command, "--dangerously-bypass-hook-trust", prompt))


def _codex_routes(_root: Path) -> list[Route]:
    def patch(*rows: str) -> Call:
        text = "\n".join(("*** Begin Patch", *rows, "*** End Patch", ""))
        return Call(tool="apply_patch", arguments={"input": text})

    return [
        Route(
            name="apply_patch, update",
            calls=(patch("*** Update File: edit.txt", "@@", "-one", "+two"),),
            path="edit.txt",
        ),
        Route(name="apply_patch, new file", calls=(patch("*** Add File: new/file.txt", "+two"),), path="new/file.txt"),
        Route(name="apply_patch, delete", calls=(patch("*** Delete File: write.txt"),), path="write.txt"),
        *(
            Route(name=name, calls=(Call(tool="exec_command", arguments={"cmd": command}),), path=path)
            for name, (command, path) in SHELL_ROUTES.items()
        ),
    ]


ROUTED_HOSTS = (
    RoutedHost(name="Claude Code", key="claude", start=_claude_start, routes=_claude_routes),
    RoutedHost(name="Codex", key="codex", start=_codex_start, routes=_codex_routes),
    RoutedHost(name="Gemini CLI", key="gemini", start=_gemini_start, routes=_gemini_routes),
)


def checks(folder: Path) -> list[Check]:
    """Take every route of every host; write the page of what was covered."""
    found = [check for host in ROUTED_HOSTS for check in _take_routes(host, folder / host.key)]
    if all(one.outcome == "passed" for one in found):
        page, _, _ = PAGE.read_text(encoding="utf-8").partition(TRIED)
        PAGE.write_text(page + describe(found), encoding="utf-8")
    return found


def _take_routes(host: RoutedHost, folder: Path) -> list[Check]:
    root, home = folder / "root", folder / "home"
    (root / "folder").mkdir(parents=True)
    home.mkdir()
    for name in _NAMES:
        (root / f"{name}.txt").write_text("one\n", encoding="utf-8")
    (root / "folder" / "inside.txt").write_text("one\n", encoding="utf-8")
    (root / "book.ipynb").write_text(json.dumps(_NOTEBOOK, indent=1), encoding="utf-8")
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")):
        subprocess.run(("git", *words), cwd=root, check=True, capture_output=True)
    variables = {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(home)}
    _surehold(root, variables, "setup", host.key)
    before, routes = _fingerprint(root), host.routes(root)
    inner = [call for route in routes for call in route.inner]
    others = {_SUBAGENT_WORD: Model(script=_follow(inner), find=plain)}
    model = Model(script=_follow([call for route in routes for call in route.calls]), find=plain, others=others)
    with serve(model, folder / "requests.jsonl") as url:
        start = host.start(url, home)
        environment = {**host_environment(home, url), **start.variables, **variables}
        with (folder / "output.txt").open("wb") as log:
            subprocess.run(
                start.command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                timeout=_PATIENCE_SECONDS, check=False,
            )  # fmt: skip
    entries = _surehold(root, variables, "log", "--all")["entries"]
    recorded = {one["path"] for one in entries if one["session"]}
    after = _fingerprint(root)
    rows = {route.name: route.path in recorded and after.get(route.path) != before.get(route.path) for route in routes}
    _surehold(root, variables, "undo", "--session", "last")
    rows[UNDONE] = _fingerprint(root) == before
    return [Check(part=host.name, name=name, outcome=outcome(ok=ok)) for name, ok in rows.items()]


def _follow(calls: list[Call]) -> Script:
    for call in calls:  # noqa: UP028 - what is sent back is for the script, not for a list
        yield call
    return "done"


def _surehold(root: Path, variables: Mapping[str, str], *words: str) -> Any:
    done = subprocess.run(
        (str(SUREHOLD), *words, "--json"), cwd=root, env={**os.environ, **variables}, capture_output=True, check=False
    )
    return json.loads(done.stdout)


def _fingerprint(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of everything but objects of git and empty directories, which may stay."""
    found = dict[str, tuple[int, bytes]]()
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith(".git/objects") or (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
            continue
        mode = path.lstat().st_mode
        data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[name] = (stat.S_IMODE(mode), data)
    return found


def describe(found: list[Check]) -> str:
    """Return our part of the page: each route of each host, as it was tried."""
    head = (
        f"{TRIED}\nWritten by `make conformance`: real hosts, set up by `surehold setup`, with a scripted model. A route is covered if its\n"
        "change is in the history with its session; at the end all of it is undone, and the tree compared. Empty directories that\n"
        "an edit tool made stay.\n\n"
    )
    parts, names = (list(dict.fromkeys(getattr(one, field) for one in found)) for field in ("part", "name"))
    names.sort(key=lambda name: (name == UNDONE, name.startswith("shell")))
    words = {(one.part, one.name): "yes" if one.outcome == "passed" else "no" for one in found}
    rows = [f"| {name} | {' | '.join(words.get((part, name), '') for part in parts)} |" for name in names]
    return "\n".join([f"{head}| route | {' | '.join(parts)} |", f"|---|{'---|' * len(parts)}", *rows, ""])
