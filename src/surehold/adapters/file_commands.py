"""The commands of a text editor and of a memory, as models know them: view, create, str_replace, insert, delete, rename.

A text is replaced by quoting it; lines are inserted by a number, so the session must have been shown that very version.
"""

from collections.abc import Mapping
from posixpath import normpath
from typing import Any, ClassVar, cast

from surehold import InsertLines, Proposal, Receipt, Seen
from surehold.adapters.shell import AnySession, cut_output, plain_session
from surehold.adapters.trees import delete_path, move_path
from surehold.errors import InvalidArgument, NotAFile, NotFound, OutsideWorkspace

_ARGUMENTS: Mapping[str, Mapping[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}
"""What each command requires."""
_KINDS = {str: "a text", int: "a number"}
_MEMORY = "/memories"
_ANY_SIZE = 1 << 30
_DIFF_CHARS = 4_000


class FileCommands:
    """The commands of a text editor, on the files of a session."""

    COMMANDS: ClassVar[tuple[str, ...]] = ("view", "create", "str_replace", "insert")

    def __init__(self, session: AnySession, *, tool: str, max_characters: int | None = None) -> None:
        self._session, self._tool, self._room = plain_session(session), tool, max_characters or _ANY_SIZE

    def run(self, given: object) -> str:
        """Do what a model asks for, with arguments as it sent them."""
        values = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else dict[str, Any]()
        command = str(values.pop("command", ""))
        if command not in self.COMMANDS:
            action = f"Choose one of {', '.join(self.COMMANDS)}."
            raise InvalidArgument(f"No command is called `{command}`.", reason="unknown_command", action=action)
        for name, kind in _ARGUMENTS[command].items():
            if not isinstance(values.get(name), kind):
                action = f"Send it as {_KINDS[kind]}."
                raise InvalidArgument(f"`{command}` requires `{name}`.", reason="bad_command", action=action)
        if (lines := values.get("view_range")) and [type(number) for number in lines] != [int, int]:
            action = "Send the first and the last line, such as [1, 40], or -1 for the end of the file."
            raise InvalidArgument("`view_range` is two numbers.", reason="bad_command", action=action)
        return getattr(self, command)(**values)

    @staticmethod
    def is_view(given: object) -> bool:
        """Tell whether what a model asks for only reads."""
        return isinstance(given, Mapping) and cast("Mapping[str, Any]", given).get("command") == "view"

    def view(self, path: str, view_range: list[int] | None = None, **_: Any) -> str:
        first, last = view_range or (1, -1)
        count = _ANY_SIZE if last == -1 else max(last - first + 1, 1)
        try:
            page = self._session.workspace.page(self.place(path), start=max(first, 1), count=count)
        except NotAFile as error:
            if error.reason != "is_a_directory":
                raise
            return self._list_directory(path)
        rows, size = list[str](), 0
        for number, row in enumerate(page.rows, start=page.start):
            text = f"{number:6}\t{page.encoding.decode(row)}"
            size += len(text)
            if rows and size > self._room:
                break
            rows.append(text)
        if not rows:
            return f"{path} has {page.line_count} lines."
        shown = self._session.page(self.place(path), start=page.start, count=len(rows))
        return "".join(rows) + (f"\n[lines from {shown.next_line} on are not shown]" if shown.next_line else "")

    def create(self, path: str, file_text: str, **_: Any) -> str:
        try:
            return _describe(self._session.write(self.place(path), file_text), path)
        except NotFound:
            return _describe(self._session.create(self.place(path), file_text), path)

    def str_replace(self, path: str, old_str: str, new_str: str = "", **_: Any) -> str:
        return _describe(self._session.edit(self.place(path), (old_str, new_str)), path)

    def insert(self, path: str, insert_line: int, insert_text: str, **_: Any) -> str:
        proposal = Proposal(path=self.place(path), edit=InsertLines(insert_line, insert_text), proof=Seen())
        return _describe(self._session.submit(proposal, operation="edit", tool=self._tool), path)

    def place(self, path: str) -> str:
        """Return where in the workspace the file is that a model names."""
        return path

    def _list_directory(self, path: str) -> str:
        found = self._session.list_directory(self.place(path), recursive=True, max_depth=2)
        rows = [f"{one['size']}\t{path.rstrip('/')}/{one['relativePath']}" for one in found.entries]
        return "\n".join([f"{path}, two levels deep, sizes in bytes:", *rows])


class MemoryCommands(FileCommands):
    """The same below `memories/`, and two more; a file that exists is never created again."""

    COMMANDS: ClassVar = tuple(_ARGUMENTS)

    def view(self, path: str, view_range: list[int] | None = None, **_: Any) -> str:
        try:
            return super().view(path, view_range)
        except NotFound:
            if self.place(path) == self.place(_MEMORY):
                return f"{_MEMORY} is empty."
            raise

    def create(self, path: str, file_text: str, **_: Any) -> str:
        return _describe(self._session.create(self.place(path), file_text), path)

    def delete(self, path: str, **_: Any) -> str:
        return _describe(delete_path(self._session, self.place(path), tool=self._tool), path)

    def rename(self, old_path: str, new_path: str, **_: Any) -> str:
        moved = move_path(self._session, self.place(old_path), self.place(new_path), tool=self._tool)
        return _describe(moved, f"{old_path} to {new_path}")

    def place(self, path: str) -> str:
        home = self._session.workspace.target(_MEMORY[1:]).key
        found = normpath(path) if path.startswith("/") else ""
        if found == _MEMORY or found.startswith(f"{_MEMORY}/"):
            key = self._session.workspace.target(found[1:]).key
            if key == home or key.startswith(f"{home}/"):
                return key
        action = f"Send a path that begins with {_MEMORY}/."
        raise OutsideWorkspace(f"`{path}` is not a memory.", path=path, reason="not_a_memory", action=action)


def _describe(receipt: Receipt, path: str) -> str:
    if not receipt.change_id:
        return f"{path}: nothing had to be written."
    return f"Done: {path} (change {receipt.change_id}).\n{cut_output(receipt.diff, _DIFF_CHARS)}".rstrip()
