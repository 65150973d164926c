"""The files of the workspace as resources: `file:///absolute/path`."""

import base64
import mimetypes
import os
import time
from collections.abc import Sequence
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from surehold.disk.base import Target
from surehold.errors import FileTooLarge, NotAFile, NotFound
from surehold.search.values import ListedEntry
from surehold.text.visible import safe_rows
from surehold.tools.spec import Json
from surehold.workspace.workspace import Workspace

_TEMPLATE = "file:///{+path}"
_PAGE = 500
_DEEP = 64
_LARGEST = 16 << 20
_ENTRIES = 2000
_REMEMBERED = 4096
_UNSETTLED_NS = 50_000_000
"""A file that changed this recently may change again without its time telling."""


def uri_of(path: str) -> str:
    """Return the address of an absolute path; its bytes need not be UTF-8."""
    return f"file://{quote_from_bytes(os.fsencode(path))}"


def path_of(uri: str) -> str | None:
    """Return the absolute path of an address; None when it is not the address of a file here."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        return None
    return os.fsdecode(unquote_to_bytes(parts.path))


class FilesShelf:
    """Shows what may be read below the roots, except what is ignored or hidden."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._marks = dict[str, tuple[tuple[int, ...], str]]()

    def page(self, after: str) -> tuple[Sequence[Json], str]:
        """Return the roots, and some of the files below them."""
        number, _, passed = after.partition("/")
        roots = self._workspace.roots
        at = int(number) if number.isascii() and number.isdigit() else 0
        rows = [_root_entry(root) for root in roots] if not after else []
        if at >= len(roots):
            return rows, ""
        listing = self._workspace.finder.list(roots[at], recursive=True, max_depth=_DEEP, limit=_PAGE, after=passed)
        rows += [_entry(roots[at], one) for one in listing.entries if one.type == "file"]
        if listing.next:
            return rows, f"{at}/{listing.next}"
        return rows, f"{at + 1}/" if at + 1 < len(roots) else ""

    def templates(self) -> Sequence[Json]:
        """Return the one template that covers every file."""
        return [
            {
                "uriTemplate": _TEMPLATE,
                "name": "file",
                "title": "A file or directory of the workspace",
                "description": "Text as it is, other files as base64, a directory as the list of its entries.",
            }
        ]

    def read(self, uri: str) -> Sequence[Json] | None:
        """Return a file, or what is in a directory."""
        path = path_of(uri)
        if path is None:
            return None
        target = self._workspace.target(path)
        place = _place(target)
        if os.path.isdir(place):  # noqa: PTH112 - strings all the way: names need not be UTF-8
            return [{"uri": uri, "mimeType": "text/plain", "text": self._listed(path)}]
        try:
            if os.stat(place, follow_symlinks=False).st_size > _LARGEST:  # noqa: PTH116 - as above
                raise FileTooLarge(
                    f"`{path}` is too large to be read at once.", path=path, action="Read parts of it with `read_file`."
                )
        except FileNotFoundError:
            raise NotFound(f"`{path}` does not exist.", path=path) from None
        snapshot = self._workspace.read(path)
        kind = mimetypes.guess_type(path)[0]
        if snapshot.is_text:
            return [{"uri": uri, "mimeType": kind or "text/plain", "text": snapshot.text}]
        blob = base64.b64encode(snapshot.data).decode("ascii")
        return [{"uri": uri, "mimeType": kind or "application/octet-stream", "blob": blob}]

    def mark(self, uri: str) -> str | None:
        """Return the sha256 of a file; it is computed again only when the file looks different."""
        path = path_of(uri)
        if path is None:
            return None
        try:
            status = os.stat(_place(self._workspace.target(path)), follow_symlinks=False)  # noqa: PTH116 - as above
        except OSError:
            return "nothing is there"
        look = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._marks.get(uri)
        if known and known[0] == look:
            return known[1]
        try:
            mark = self._workspace.fingerprint(path)
        except NotAFile:
            mark = str(look)
        if time.time_ns() - status.st_mtime_ns > _UNSETTLED_NS:
            if len(self._marks) > _REMEMBERED:
                self._marks.clear()
            self._marks[uri] = (look, mark)
        return mark

    def complete(self, template: str, value: str) -> Sequence[str]:
        """Return the entries of the directory that was typed so far."""
        if template != _TEMPLATE:
            return ()
        directory, _, start = f"/{value.lstrip('/')}".rpartition("/")
        listing = self._workspace.finder.list(directory or "/", recursive=False, limit=_ENTRIES)
        found = [one for one in listing.entries if one.name.startswith(start)]
        return [f"{directory}/{one.name}{'/' * (one.type == 'directory')}".lstrip("/") for one in found]

    def _listed(self, path: str) -> str:
        listing = self._workspace.finder.list(path, recursive=False, limit=_ENTRIES)
        rows = [f"{safe_rows(one.name)}{'/' * (one.type == 'directory')}" for one in listing.entries]
        if listing.truncated:
            rows.append(f"[more than {_ENTRIES:,} entries; use `list_directory` for the rest]")
        return "\n".join(rows)


def _place(target: Target) -> str:
    return os.path.join(target.root, *target.parts)  # noqa: PTH118 - strings all the way: names need not be UTF-8


def _root_entry(root: str) -> Json:
    name = safe_rows(root.rstrip("/").rpartition("/")[2] or root)
    return {
        "uri": uri_of(root),
        "name": f"{name}/",
        "description": "A root of the workspace.",
        "mimeType": "text/plain",
    }


def _entry(root: str, one: ListedEntry) -> Json:
    entry: Json = {
        "uri": uri_of(f"{root.rstrip('/')}/{one.relative}"),
        "name": safe_rows(one.relative),
        "size": one.size,
    }
    kind = mimetypes.guess_type(one.name)[0]
    return {**entry, "mimeType": kind} if kind else entry
