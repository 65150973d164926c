"""File servers, and how each of them spells the same work."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from mcp_client import Json, McpClient, Refused, ours

HOME = Path(__file__).parents[2]
_NPM = HOME / ".conformance" / "peers" / "node_modules"
_PIP = HOME / ".conformance" / "peers-python"
_SHOWN_SHA256 = re.compile(r"sha256:? (\w{64})")


class Unable(Exception):
    """A server has no tool for some work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdit:
    """The line of this number holds the old text, and gets the new one."""

    number: int
    old: str
    new: str


@dataclass(kw_only=True)
class Contestant:
    """One server on one root; the sha256 and anchors that it showed last belong to one client."""

    name: str
    version: str
    command: Callable[[Path, Path], tuple[str, ...]]
    """Takes the root, and a place for what the server keeps beside it."""
    edit_needs: str = "1 call"
    """What an edit takes, beside reading the file once."""

    def read(self, client: McpClient, file: Path) -> str:
        raise NotImplementedError

    def edit(self, client: McpClient, file: Path, change: LineEdit) -> None:
        raise NotImplementedError

    def write(self, client: McpClient, file: Path, text: str) -> None:
        raise NotImplementedError

    def list_names(self, client: McpClient, folder: Path) -> str:
        del client, folder
        raise Unable("no such tool")

    def search(self, client: McpClient, folder: Path, word: str) -> str:
        del client, folder, word
        raise Unable("no such tool")


def text_of(result: Json) -> str:
    return "".join(one.get("text", "") for one in result["content"])


@dataclass(kw_only=True)
class Surehold(Contestant):
    shown: dict[tuple[int, Path], str] = field(default_factory=dict[tuple[int, Path], str])

    def read(self, client: McpClient, file: Path) -> str:
        text = text_of(client.call("read_file", {"path": str(file)}))
        self._remember(client, file, text)
        return text

    def edit(self, client: McpClient, file: Path, change: LineEdit) -> None:
        if (client.process.pid, file) not in self.shown:
            self.read(client, file)
        edits = [{"oldText": change.old, "newText": change.new}]
        try:
            self._change(client, file, "edit_file", {"edits": edits})
        except Refused as error:
            self._remember(client, file, str(error), retry=True)
            raise

    def write(self, client: McpClient, file: Path, text: str) -> None:
        if (client.process.pid, file) not in self.shown:
            self.read(client, file)
        self._change(client, file, "write_file", {"content": text})

    def list_names(self, client: McpClient, folder: Path) -> str:
        return text_of(client.call("list_directory", {"path": str(folder)}))

    def search(self, client: McpClient, folder: Path, word: str) -> str:
        return text_of(client.call("search_files", {"path": str(folder), "query": word}))

    def _change(self, client: McpClient, file: Path, tool: str, arguments: Json) -> None:
        sha256 = self.shown[client.process.pid, file]
        result = client.call(tool, {"path": str(file), "expectedSha256": sha256, **arguments})
        self.shown[client.process.pid, file] = result["structuredContent"]["data"]["afterSha256"]

    def _remember(self, client: McpClient, file: Path, text: str, *, retry: bool = False) -> None:
        found = re.search(r"retryWithSha256: (\w{64})", text) if retry else _SHOWN_SHA256.search(text)
        if found:
            self.shown[client.process.pid, file] = found[1]
        else:
            self.shown.pop((client.process.pid, file), None)


class Reference(Contestant):
    def read(self, client: McpClient, file: Path) -> str:
        return text_of(client.call("read_text_file", {"path": str(file)}))

    def edit(self, client: McpClient, file: Path, change: LineEdit) -> None:
        client.call("edit_file", {"path": str(file), "edits": [{"oldText": change.old, "newText": change.new}]})

    def write(self, client: McpClient, file: Path, text: str) -> None:
        client.call("write_file", {"path": str(file), "content": text})

    def list_names(self, client: McpClient, folder: Path) -> str:
        return text_of(client.call("list_directory_with_sizes", {"path": str(folder)}))


class FastFilesystem(Contestant):
    def read(self, client: McpClient, file: Path) -> str:
        return text_of(client.call("fast_read_file", {"path": str(file)}))

    def edit(self, client: McpClient, file: Path, change: LineEdit) -> None:
        client.call("fast_edit_block", {"path": str(file), "old_text": change.old, "new_text": change.new})

    def write(self, client: McpClient, file: Path, text: str) -> None:
        client.call("fast_write_file", {"path": str(file), "content": text})

    def list_names(self, client: McpClient, folder: Path) -> str:
        return text_of(client.call("fast_list_directory", {"path": str(folder), "page_size": 1000}))

    def search(self, client: McpClient, folder: Path, word: str) -> str:
        return text_of(client.call("fast_search_code", {"path": str(folder), "pattern": word}))


class DesktopCommander(Contestant):
    def read(self, client: McpClient, file: Path) -> str:
        return text_of(client.call("read_file", {"path": str(file)}))

    def edit(self, client: McpClient, file: Path, change: LineEdit) -> None:
        arguments = {"file_path": str(file), "old_string": change.old, "new_string": change.new}
        said = text_of(client.call("edit_block", arguments))
        if not said.startswith(("[Reading", "Successfully")):  # a refusal is not marked as an error
            raise Refused(said)

    def write(self, client: McpClient, file: Path, text: str) -> None:
        client.call("write_file", {"path": str(file), "content": text, "mode": "rewrite"})

    def list_names(self, client: McpClient, folder: Path) -> str:
        return text_of(client.call("list_directory", {"path": str(folder), "depth": 1}))

    def search(self, client: McpClient, folder: Path, word: str) -> str:
        """Start a search, and ask for its results until there are some, or it has ended."""
        arguments = {"path": str(folder), "pattern": word, "searchType": "content"}
        said = text_of(client.call("start_search", arguments))
        session = re.search(r"session: (\S+)", said)
        while session and not _hits_in(said) and "RUNNING" in said:
            said = text_of(client.call("get_more_search_results", {"sessionId": session[1]}))
        return "\n".join(_hits_in(said)) if session else said


def _hits_in(said: str) -> list[str]:
    return [row for row in said.splitlines() if row.startswith("\N{PAGE FACING UP}")]


def _start_desktop_commander(root: Path, state: Path) -> tuple[str, ...]:
    """Return its command, with a home of its own in which it may use the root and reports nothing."""
    state.mkdir(exist_ok=True)
    home = Path(mkdtemp(dir=state))  # of each process: one that was killed leaves a lock
    settings = home / ".claude-server-commander" / "config.json"
    settings.parent.mkdir()
    allowed = {"allowedDirectories": [str(root)], "telemetryEnabled": False}
    settings.write_text(json.dumps(allowed), encoding="utf-8")
    program = _NPM / "@wonderwhy-er" / "desktop-commander" / "dist" / "index.js"
    return ("env", f"HOME={home}", "node", str(program), "--no-onboarding")


class Hashline(Contestant):
    def read(self, client: McpClient, file: Path) -> str:
        return text_of(client.call("read_file", {"path": str(file)}))

    def edit(self, client: McpClient, file: Path, change: LineEdit) -> None:
        shown = text_of(client.call("read_file", {"path": str(file), "offset": change.number, "limit": 1}))
        anchor = re.search(rf"^({change.number}:\w+)\|", shown, re.MULTILINE)
        if anchor is None or change.old not in shown:
            raise Refused(f"line {change.number} is not shown: {shown[:200]}")
        edits = [{"set_line": {"anchor": anchor[1], "new_text": change.new}}]
        client.call("edit_file", {"path": str(file), "edits": edits})

    def write(self, client: McpClient, file: Path, text: str) -> None:
        client.call("write_file", {"path": str(file), "content": text})

    def search(self, client: McpClient, folder: Path, word: str) -> str:
        return text_of(client.call("grep", {"pattern": word, "path": str(folder)}))


class TextEditor(Contestant):
    def read(self, client: McpClient, file: Path) -> str:
        return text_of(self._get(client, file, {"start": 1}))

    def edit(self, client: McpClient, file: Path, change: LineEdit) -> None:
        self._replace(client, file, (change.number, change.number), f"{change.new}\n")

    def write(self, client: McpClient, file: Path, text: str) -> None:
        self._replace(client, file, (1, None), text)

    def _get(self, client: McpClient, file: Path, lines: Json) -> Json:
        return client.call("get_text_file_contents", {"files": [{"file_path": str(file), "ranges": [lines]}]})

    def _replace(self, client: McpClient, file: Path, rows: tuple[int, int | None], text: str) -> None:
        first, last = rows
        lines: Json = {"start": first} if last is None else {"start": first, "end": last}
        shown = json.loads(text_of(self._get(client, file, lines)))[str(file)]
        patch: Json = {
            "line_start": first,
            "line_end": last,
            "contents": text,
            "range_hash": shown["ranges"][0]["range_hash"],
        }
        change = {"path": str(file), "file_hash": shown["file_hash"], "patches": [patch]}
        answer = json.loads(text_of(client.call("edit_text_file_contents", {"files": [change]})))
        if answer[str(file)].get("result") != "ok":
            raise Refused(answer)


def find_contestants() -> tuple[Contestant, ...]:
    """Return our server and its peers, installed when they were not."""
    subprocess.run(["sh", str(HOME / "scripts" / "conformance-setup.sh"), "peers"], check=True)
    reference, fast, hashline = (
        "@modelcontextprotocol/server-filesystem",
        "fast-filesystem-mcp",
        "mcp-hashline-edit-server",
    )
    editor = _PIP / "mcp-text-editor" / "bin"
    return (
        Surehold(name="Surehold", version=_own_version(), command=lambda root, state: ours(root, state)[:-1]),
        Reference(
            name="reference server",
            version=f"{reference} {_npm_version(reference)}",
            command=lambda root, _: ("node", str(_NPM / reference / "dist" / "index.js"), str(root)),
        ),
        FastFilesystem(
            name=fast,
            version=_npm_version(fast),
            command=lambda root, _: ("node", str(_NPM / fast / "dist" / "index.js"), str(root)),
        ),
        DesktopCommander(
            name="desktop-commander",
            version=_npm_version("@wonderwhy-er/desktop-commander"),
            command=_start_desktop_commander,
        ),
        Hashline(
            name=hashline,
            version=f"{_npm_version(hashline)}, bun {_npm_version('bun')}",
            command=lambda _, __: (str(_NPM / ".bin" / "bun"), str(_NPM / hashline / "src" / "index.ts")),
            edit_needs="2 calls: the line's hash, the edit",
        ),
        TextEditor(
            name="mcp-text-editor",
            version=_pip_version(editor, "mcp-text-editor"),
            command=lambda _, __: (str(editor / "mcp-text-editor"),),
            edit_needs="2 calls: hashes of file and line, the edit",
        ),
    )


def _own_version() -> str:
    from surehold import __version__

    return __version__


def _npm_version(package: str) -> str:
    return str(_json_of(_NPM / package / "package.json")["version"])


def _pip_version(folder: Path, package: str) -> str:
    code = f"from importlib.metadata import version as v; print(v({package!r}) + ', mcp ' + v('mcp'))"
    return subprocess.run([folder / "python", "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _json_of(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))
