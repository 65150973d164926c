"""MCP resources: workspace files, the log, and answers that were too large; and a watcher for changes.

A `ResourceProvider` serves the resources of one kind; the adapter asks one provider after the other.
"""

import base64
import json
import mimetypes
import os
import re
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from urllib.parse import parse_qsl, quote_from_bytes, unquote_to_bytes, urlsplit

from surehold.disk.base import Target
from surehold.errors import FileTooLarge, InvalidArgument, NotAFile, NotFound, SureholdError
from surehold.front.shared.ledger_json import entry_summary
from surehold.search.query import ListedEntry
from surehold.stores.base import Entry, LedgerQuery
from surehold.text.escape import escape_lines
from surehold.text.measure import TextRoom
from surehold.tools.call import Json
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.workspace import Workspace

_FROM = "?from="
"""Before the character, or the byte of a file that is not text, with which a part of a resource begins."""
_WHOLE_TYPES = ("image/", "audio/", "video/")
"""What hosts show or play and never hand on as text: a part of it is of no use."""


def split_address(uri: str) -> tuple[str, int | None]:
    """Return the address of a resource, and where the wanted part of it begins; None if all of it is wanted."""
    base, mark, start = uri.rpartition(_FROM)
    return (base, int(start)) if mark and start.isascii() and start.isdigit() else (uri, None)


def cut_resource(content: Json, start: int | None, room: TextRoom) -> list[Json]:
    """Return the part that fits; the address of the next part is above and below a text, and beside a part in base64."""
    if "text" in content:
        return [_cut_text_resource(content, start or 0, room)]
    blob = str(content["blob"])
    if start is None and (content["mimeType"].startswith(_WHOLE_TYPES) or room.measure(blob) <= room.size):
        return [content]
    base, data = split_address(content["uri"])[0], base64.b64decode(blob)
    if start is None:
        message = f"`{base}` is not text, and its {len(data):,} bytes do not fit into one answer."
        raise FileTooLarge(message, action=f"Read its parts, beginning with the resource {base}{_FROM}0.")
    note = f"[bytes {len(data)} to {len(data)} of {len(data)}; goes on: the resource {base}{_FROM}{len(data)}]"
    shown = room.less(room.measure(note)).cut_text(base64.b64encode(data[start:]).decode("ascii"))
    end = min(start + max(len(shown) // 4, 1) * 3, len(data))
    following = f"; goes on: the resource {base}{_FROM}{end}" if end < len(data) else ""
    note = f"[bytes {start} to {end} of {len(data)}{following}]"
    part = base64.b64encode(data[start:end]).decode("ascii")
    return [
        {**content, "mimeType": "application/octet-stream", "blob": part},
        {"uri": content["uri"], "mimeType": "text/plain", "text": note},
    ]


def _cut_text_resource(content: Json, start: int, room: TextRoom) -> Json:
    text = content["text"]
    if not (start or room.measure(text) > room.size):
        return content
    rest, base = text[start:], split_address(content["uri"])[0]
    if room.measure(rest) > room.size:
        note = f"[goes on: the resource {base}{_FROM}{len(text)}]"
        shown = room.less(2 * room.measure(f"{note}\n")).cut_text(rest)
        shown = shown[: shown.rfind("\n") + 1] or shown or rest[:1]
        note = f"[goes on: the resource {base}{_FROM}{start + len(shown)}]"
        rest = "\n".join((note, shown.removesuffix("\n"), note))
    return {**content, "mimeType": "text/plain", "text": rest}


class ResourceProvider:
    """Resources of one kind; by itself it has none."""

    def list_page(self, after: str) -> tuple[Sequence[Json], str]:  # noqa: ARG002 - it has none
        """Return what `resources/list` shows next, and where to go on; empty at the end."""
        return (), ""

    def list_templates(self) -> Sequence[Json]:
        return ()

    def read_resource(self, uri: str) -> Sequence[Json] | None:  # noqa: ARG002 - it has none
        """Return the contents of a resource; None when another provider has it, an error when it cannot be read."""
        return None

    def content_mark(self, uri: str) -> str | None:  # noqa: ARG002 - what is here never changes
        """Return a text that differs whenever the content does; None when another provider has it."""
        return None

    def complete_value(self, template: str, value: str) -> Sequence[str]:  # noqa: ARG002 - it has no templates
        return ()


_FILE_URI_TEMPLATE = "file:///{+path}"
_FILES_PER_PAGE = 500
_MAX_DEPTH = 64
_MAX_FILE_BYTES = 16 << 20
_MAX_DIRECTORY_ENTRIES = 2000
_MAX_REMEMBERED_MARKS = 4096
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


class FileResources(ResourceProvider):
    """Shows what may be read below the roots, except what is ignored or hidden."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._marks = dict[str, tuple[tuple[int, ...], str]]()

    def list_page(self, after: str) -> tuple[Sequence[Json], str]:
        number, _, passed = after.partition("/")
        roots = self._workspace.roots
        at = int(number) if number.isascii() and number.isdigit() else 0
        rows = [_root_entry(root) for root in roots] if not after else []
        if at >= len(roots):
            return rows, ""
        listing = self._workspace.finder.list(
            roots[at], recursive=True, max_depth=_MAX_DEPTH, limit=_FILES_PER_PAGE, after=passed
        )
        rows += [_file_entry(roots[at], one) for one in listing.entries if one.type == "file"]
        if listing.next:
            return rows, f"{at}/{listing.next}"
        return rows, f"{at + 1}/" if at + 1 < len(roots) else ""

    def list_templates(self) -> Sequence[Json]:
        return [
            {
                "uriTemplate": _FILE_URI_TEMPLATE,
                "name": "file",
                "title": "A file or directory of the workspace",
                "description": "Text as it is, other files as base64, a directory as the list of its entries.",
            }
        ]

    def read_resource(self, uri: str) -> Sequence[Json] | None:
        path = path_of(uri)
        if path is None:
            return None
        target = self._workspace.target(path)
        place = _absolute_path(target)
        if os.path.isdir(place):  # noqa: PTH112 - strings all the way: names need not be UTF-8
            return [{"uri": uri, "mimeType": "text/plain", "text": self._directory_text(path)}]
        try:
            if os.stat(place, follow_symlinks=False).st_size > _MAX_FILE_BYTES:  # noqa: PTH116 - as above
                action = "Read parts of it with `read_file`."
                raise FileTooLarge(f"`{path}` is too large to be read at once.", path=path, action=action)
        except FileNotFoundError:
            raise NotFound(f"`{path}` does not exist.", path=path) from None
        snapshot = self._workspace.read(path)
        kind = mimetypes.guess_type(path)[0]
        if snapshot.is_text:
            return [{"uri": uri, "mimeType": kind or "text/plain", "text": snapshot.text}]
        blob = base64.b64encode(snapshot.data).decode("ascii")
        return [{"uri": uri, "mimeType": kind or "application/octet-stream", "blob": blob}]

    def content_mark(self, uri: str) -> str | None:
        """Return the sha256 of a file; it is computed again only when the file looks different."""
        path = path_of(uri)
        if path is None:
            return None
        try:
            status = os.stat(_absolute_path(self._workspace.target(path)), follow_symlinks=False)  # noqa: PTH116 - as above
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
            if len(self._marks) > _MAX_REMEMBERED_MARKS:
                self._marks.clear()
            self._marks[uri] = (look, mark)
        return mark

    def complete_value(self, template: str, value: str) -> Sequence[str]:
        if template != _FILE_URI_TEMPLATE:
            return ()
        directory, _, start = f"/{value.lstrip('/')}".rpartition("/")
        listing = self._workspace.finder.list(directory or "/", recursive=False, limit=_MAX_DIRECTORY_ENTRIES)
        found = [one for one in listing.entries if one.name.startswith(start)]
        return [f"{directory}/{one.name}{'/' * (one.type == 'directory')}".lstrip("/") for one in found]

    def _directory_text(self, path: str) -> str:
        listing = self._workspace.finder.list(path, recursive=False, limit=_MAX_DIRECTORY_ENTRIES)
        rows = [f"{escape_lines(one.name)}{'/' * (one.type == 'directory')}" for one in listing.entries]
        if listing.truncated:
            rows.append(f"[more than {_MAX_DIRECTORY_ENTRIES:,} entries; use `list_directory` for the rest]")
        return "\n".join(rows)


def _absolute_path(target: Target) -> str:
    return os.path.join(target.root, *target.parts)  # noqa: PTH118 - strings all the way: names need not be UTF-8


def _root_entry(root: str) -> Json:
    name = escape_lines(root.rstrip("/").rpartition("/")[2] or root)
    described = {"description": "A root of the workspace.", "mimeType": "text/plain"}
    return {"uri": uri_of(root), "name": f"{name}/", **described}


def _file_entry(root: str, one: ListedEntry) -> Json:
    uri = uri_of(f"{root.rstrip('/')}/{one.relative}")
    entry: Json = {"uri": uri, "name": escape_lines(one.relative), "size": one.size}
    kind = mimetypes.guess_type(one.name)[0]
    return {**entry, "mimeType": kind} if kind else entry


LOG_URI = "surehold://log"
_NEWEST_ENTRIES = 100
_SELECTORS = ("session", "agent", "turn", "since", "until", "path")
_LOG_LISTING: Json = {
    "uri": LOG_URI,
    "name": "log",
    "title": "What happened here",
    "description": f"The newest {_NEWEST_ENTRIES} entries of the ledger: changes, refused calls, outside edits.",
    "mimeType": "application/json",
}


class LedgerResources(ResourceProvider):
    """Shows what happened in this workspace, newest first."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list_page(self, after: str) -> tuple[Sequence[Json], str]:  # noqa: ARG002 - there is one page
        return [_LOG_LISTING], ""

    def list_templates(self) -> Sequence[Json]:
        return [
            {
                "uriTemplate": f"{LOG_URI}{{?{','.join(_SELECTORS)}}}",
                "name": "selected log",
                "title": "What happened here, selected",
                "description": f"The newest {_NEWEST_ENTRIES} entries that selectors name, which are those of the command "
                "line: `session` and `turn` (an id, or `last`), `agent` (the beginning of a name), `since` and `until` "
                "(2026-11-17T10:00, 10:00, 2h, yesterday), `path` (a file or directory).",
                "mimeType": "application/json",
            }
        ]

    def read_resource(self, uri: str) -> Sequence[Json] | None:
        base, _, query = uri.partition("?")
        if base != LOG_URI:
            return None
        words = _read_selectors(query)
        history = self._workspace.history
        outside = not (words.session or words.agent or words.turn or words.since or words.until)
        found = history.iterate(history.select(words), ok_only=False, outside=outside)
        rows = [entry_summary(entry) for entry in islice(found, _NEWEST_ENTRIES) if self._may_show(entry)]
        return [{"uri": uri, "mimeType": "application/json", "text": json.dumps({"entries": rows}, indent=1)}]

    def _may_show(self, entry: Entry) -> bool:
        keys = filter(None, (entry.change.path, entry.change.to_path))
        return all(self._workspace.may_show_recorded(key) for key in keys)

    def content_mark(self, uri: str) -> str | None:
        if uri.partition("?")[0] != LOG_URI:
            return None
        return str(next((entry.seq for entry in self._workspace.history.log(LedgerQuery(limit=1))), 0))


def _read_selectors(query: str) -> Selectors:
    """Return the selectors of an address; a name that is none of theirs is refused."""
    found = dict[str, list[str]]()
    for name, value in parse_qsl(query, errors="surrogateescape"):
        found.setdefault(name, []).append(value)
    if unknown := next((name for name in found if name not in _SELECTORS), ""):
        action = f"Use {', '.join(f'`{name}`' for name in _SELECTORS)}."
        raise InvalidArgument(f"`{unknown[:80]}` is not a selector.", reason="unknown_selector", action=action)
    if several := next((name for name in found if name != "path" and len(found[name]) > 1), ""):
        raise InvalidArgument(f"`{several}` is given more than once.", reason="selector_twice")
    words = {name: values[0] for name, values in found.items() if name != "path"}
    return Selectors(**words, paths=tuple(found.get("path", ())))


_ANSWER_URI_PREFIX = "surehold://answer/"
_SHARED_MARK = "surehold-answer"
_SHARED_NAME = re.compile(re.escape(_ANSWER_URI_PREFIX) + "[0-9a-f]{64}")
_MAX_SAVED_CHARS = 64 << 20


class SavedAnswers(ResourceProvider):
    """Keeps whole answers under names that cannot be guessed; the oldest go when there are too many."""

    def __init__(self, shared: Workspace | None = None, *, limit: int = _MAX_SAVED_CHARS) -> None:
        """`shared`: keep them in the history of this workspace, for all servers that use it."""
        self._limit, self._shared = limit, shared
        self._kept = OrderedDict[str, tuple[str, str]]()
        self._lock = threading.Lock()

    def keep_text(self, text: str, mime_type: str) -> str:
        if self._shared is not None:
            # The random word makes the name of the bytes one that cannot be guessed.
            mark = f"{_SHARED_MARK} {secrets.token_urlsafe(12)} {mime_type}\n"
            with suppress(SureholdError):  # what cannot be shared now is kept here
                return _ANSWER_URI_PREFIX + self._shared.keep_bytes((mark + text).encode("utf-8", "surrogatepass"))
        uri = _ANSWER_URI_PREFIX + secrets.token_urlsafe(12)
        with self._lock:
            self._kept[uri] = (text, mime_type)
            while len(self._kept) > 1 and sum(len(kept) for kept, _ in self._kept.values()) > self._limit:
                self._kept.popitem(last=False)
        return uri

    def read_resource(self, uri: str) -> Sequence[Json] | None:
        if self._shared is not None and _SHARED_NAME.fullmatch(uri):
            mark, _, text = self._shared.read_bytes(uri[len(_ANSWER_URI_PREFIX) :]).decode().partition("\n")
            if not mark.startswith(f"{_SHARED_MARK} "):  # a version of a file, which rules may hide
                return None
            return [{"uri": uri, "mimeType": mark.split(" ")[-1], "text": text}]
        with self._lock:
            found = self._kept.get(uri)
        return [{"uri": uri, "mimeType": found[1], "text": found[0]}] if found else None


POLL_SECONDS = 0.5


class ResourceWatcher:
    """Checks the resources that clients subscribed to, in a thread that exists while there are any."""

    def __init__(
        self, mark: Callable[[str], str], notify: Callable[[str], None], *, every: float = POLL_SECONDS
    ) -> None:
        """`notify` is called in that thread."""
        self._mark = mark
        self._notify = notify
        self._every = every
        self._wanted = Counter[str]()
        self._marks = dict[str, str]()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def add_uri(self, uri: str) -> None:
        """Begin to check a resource, against what it is now."""
        mark = self._marks.get(uri) or self._mark(uri)
        with self._lock:
            self._marks.setdefault(uri, mark)
            self._wanted[uri] += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._check_while_wanted, name="watch-resources", daemon=True)
                self._thread.start()

    def drop_uri(self, uri: str) -> None:
        """Stop checking it when no other client subscribed to it."""
        with self._lock:
            self._wanted[uri] -= 1
            if self._wanted[uri] <= 0:
                del self._wanted[uri]
                self._marks.pop(uri, None)

    def close(self) -> None:
        self._closed.set()

    def _check_while_wanted(self) -> None:
        while not self._closed.wait(self._every):
            with self._lock:
                wanted = list(self._wanted)
                if not wanted:
                    self._thread = None
                    return
            for uri in wanted:
                self._check_uri(uri)

    def _check_uri(self, uri: str) -> None:
        mark = self._mark(uri)
        with self._lock:
            if uri not in self._wanted or mark == self._marks.get(uri):
                return
            self._marks[uri] = mark
        self._notify(uri)
