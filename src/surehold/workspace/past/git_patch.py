"""What changes did as a patch for `git apply`: moves, modes, links, empty files and bytes that are not text, too."""

import base64
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import replace

from surehold.text.diff import quote_name
from surehold.text.plan import MAX_COMPARED_BYTES, diff_between, plan_between
from surehold.text.snapshot import ABSENT, Snapshot, Version
from surehold.workspace.past.net_diff import FileNetDiff

_NO_BLOB = "0" * 40
_BYTES_PER_ROW = 52
_ROWS_PER_PIECE = 10_000


def render_git_patch(file: FileNetDiff) -> bytes:
    """Return the part of a patch that is about one file; empty if git does not know of such a thing."""
    if file.conflict:
        return b"".join(map(render_git_patch, file.parts))
    before, after = _held(file.before_version), _held(file.after_version)
    if before and after and (before.kind == "link") != (after.kind == "link"):
        # git has no other way to make a link of a file.
        gone = replace(file, to_key="", after=ABSENT, after_version=None)
        made = replace(file, key=file.to_key or file.key, to_key="", before=ABSENT, before_version=None)
        return render_git_patch(gone) + render_git_patch(made)
    if file.key.startswith("/") or (before is None and after is None):
        return b""
    return "".join(_render_rows(file, before, after)).encode("utf-8", "surrogateescape")


def find_left_out(file: FileNetDiff) -> str:
    """Say what of a file a patch cannot hold; empty when it holds everything."""
    if file.key.startswith("/"):
        return "it is in another root"
    if file.conflict:
        return "" if file.parts else file.conflict
    versions = [one for one in (file.before_version, file.after_version) if one]
    if odd := next((one.kind for one in versions if _held(one) is None), ""):
        return f"a {'directory' if odd == 'directory' else 'FIFO'} by itself cannot be in a patch"
    modes = [one.mode for one in versions if one.mode is not None and one.kind == "file"]
    if len(set(modes)) > 1 and len({mode & 0o100 for mode in modes}) == 1:
        return f"git does not record the mode {modes[-1]:04o}"
    return ""


def _held(version: Version | None) -> Version | None:
    return version if version and version.kind in {"file", "link"} else None


def _render_rows(file: FileNetDiff, before: Version | None, after: Version | None) -> Iterator[str]:
    to_key = file.to_key or file.key
    old_mode, new_mode = _git_mode(before), _git_mode(after)
    same = before is not None and after is not None and file.before.data == file.after.data
    if same and not file.to_key and old_mode == new_mode:
        return  # only what git does not record, and git refuses a heading alone
    yield f"diff --git {_quote(f'a/{file.key}')} {_quote(f'b/{to_key}')}\n"
    if before is None:
        yield f"new file mode {new_mode}\n"
    elif after is None:
        yield f"deleted file mode {old_mode}\n"
    elif old_mode != new_mode:
        yield f"old mode {old_mode}\nnew mode {new_mode}\n"
    if file.to_key:
        yield "similarity index 100%\n" if same else ""
        yield f"rename from {_quote(file.key)}\nrename to {_quote(to_key)}\n"
    if same:
        return
    yield f"index {_blob_name(file.before)}..{_blob_name(file.after)}\n"
    if not (file.before.data or file.after.data):
        return
    is_small = plan_between(file.before, file.after).differing_bytes <= MAX_COMPARED_BYTES
    if is_small and _has_text_rows(file.before) and _has_text_rows(file.after):
        yield diff_between(file.before, file.after, from_name=f"a/{file.key}", to_name=f"b/{to_key}").text
    else:
        yield "GIT binary patch\n"
        for side in (file.after.data, file.before.data):
            yield from _literal(side)
            yield "\n"


def _git_mode(version: Version | None) -> str:
    if version and version.kind == "link":
        return "120000"
    return "100755" if version and version.mode and version.mode & 0o100 else "100644"


def _quote(name: str) -> str:
    return quote_name(name).rstrip("\t")


def _blob_name(snapshot: Snapshot) -> str:
    if not snapshot.exists:
        return _NO_BLOB
    return hashlib.sha1(b"blob %d\0" % snapshot.size + snapshot.data, usedforsecurity=False).hexdigest()


def _has_text_rows(snapshot: Snapshot) -> bool:
    """Tell whether the rows of a diff are exactly the bytes: UTF-8, in lines that end in LF or CRLF."""
    try:
        snapshot.data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in snapshot.data and not snapshot.needs_table


def _literal(data: bytes) -> Iterator[str]:
    packed = zlib.compress(data)
    yield f"literal {len(data)}\n"
    for start in range(0, len(packed), _BYTES_PER_ROW * _ROWS_PER_PIECE):
        piece = packed[start : start + _BYTES_PER_ROW * _ROWS_PER_PIECE]
        rows = (piece[at : at + _BYTES_PER_ROW] for at in range(0, len(piece), _BYTES_PER_ROW))
        yield "".join(map(_encode_row, rows))


def _encode_row(row: bytes) -> str:
    length = chr(ord("A") + len(row) - 1) if len(row) <= 26 else chr(ord("a") + len(row) - 27)  # noqa: PLR2004 - the alphabet
    return f"{length}{base64.b85encode(row, pad=True).decode()}\n"
