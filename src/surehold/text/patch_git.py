"""What stands between `diff --git` and the first hunk: modes, renames, new and deleted files."""

from typing import NamedTuple

from surehold.errors import PatchParseError
from surehold.text.patch_names import read_name, split_pair, without_prefixes
from surehold.text.patch_source import Source

_MODES = {"100644": 0o644, "100755": 0o755}
_EXECUTABLE = 0o755


class GitHeader(NamedTuple):
    """What a header says about a file; the names are empty when the first row alone does not tell them."""

    line: int
    is_git: bool = False
    old: str = ""
    new: str = ""
    adds: bool = False
    deletes: bool = False
    renames: bool = False
    mode: int | None = None


def read_git_header(source: Source) -> GitHeader:
    """Read the extended header of git, up to the row that does not belong to it."""
    first = source.head or ""
    pair = split_pair(first.removeprefix("diff --git "))
    old, new = without_prefixes(*pair) if pair else ("", "")
    header = GitHeader(line=source.line, is_git=True, old=old, new=new)
    source.at += 1
    moved: dict[str, str] = {}
    while (row := source.head) is not None:
        for start, read in _ROWS.items():
            if row.startswith(start):
                header = read(source, header, row.removeprefix(start), moved)
                break
        else:
            break
        source.at += 1
    return _renamed(source, header, moved)


def _renamed(source: Source, header: GitHeader, moved: dict[str, str]) -> GitHeader:
    if not moved:
        if header.old != header.new:
            raise source.refusal(
                "the same path twice, or `rename from` and `rename to`",
                line=header.line,
                reason="two_names",
                said=f"`diff --git` names two files, `{header.old}` and `{header.new}`, and no rename follows",
            )
        return header
    if set(moved) != {"from", "to"}:
        raise source.refusal("both `rename from` and `rename to`", reason="half_rename")
    if header.adds or header.deletes:
        raise source.refusal("a file that is renamed, or added or deleted", line=header.line, reason="contradiction")
    return header._replace(old=moved["from"], new=moved["to"], renames=True)


def _old_mode(source: Source, header: GitHeader, value: str, _: dict[str, str]) -> GitHeader:
    _mode(source, value)
    return header


def _new_mode(source: Source, header: GitHeader, value: str, _: dict[str, str]) -> GitHeader:
    return header._replace(mode=_mode(source, value))


def _new_file(source: Source, header: GitHeader, value: str, _: dict[str, str]) -> GitHeader:
    mode = _mode(source, value)
    # A plain new file gets the permissions that new files get here.
    return header._replace(adds=True, mode=mode if mode == _EXECUTABLE else None)


def _deleted_file(source: Source, header: GitHeader, value: str, _: dict[str, str]) -> GitHeader:
    _mode(source, value)
    return header._replace(deletes=True)


def _index(source: Source, header: GitHeader, value: str, _: dict[str, str]) -> GitHeader:
    words = value.split()
    if len(words) > 1:
        _mode(source, words[1])
    return header


def _rename_from(source: Source, header: GitHeader, value: str, moved: dict[str, str]) -> GitHeader:
    moved["from"] = _name(source, value)
    return header


def _rename_to(source: Source, header: GitHeader, value: str, moved: dict[str, str]) -> GitHeader:
    moved["to"] = _name(source, value)
    return header


def _similarity(source: Source, header: GitHeader, value: str, moved: dict[str, str]) -> GitHeader:  # noqa: ARG001 - one shape for all
    return header


def _copy(source: Source, header: GitHeader, value: str, moved: dict[str, str]) -> GitHeader:  # noqa: ARG001 - one shape for all
    raise source.refusal(
        "no copy",
        reason="copy",
        said="copies are not applied",
        action="Make the diff without `-C`, so that the copy is a new file.",
    )


_ROWS = {
    "old mode ": _old_mode,
    "new mode ": _new_mode,
    "new file mode ": _new_file,
    "deleted file mode ": _deleted_file,
    "rename from ": _rename_from,
    "rename to ": _rename_to,
    "copy from ": _copy,
    "copy to ": _copy,
    "similarity index ": _similarity,
    "dissimilarity index ": _similarity,
    "index ": _index,
}


def _name(source: Source, value: str) -> str:
    read = read_name(value)
    if read is None or not read[0]:
        raise source.refusal("a path, quoted as git does", reason="no_path")
    return read[0]


def _mode(source: Source, value: str) -> int:
    mode = _MODES.get(value.strip())
    if mode is None:
        raise _special(source, value.strip())
    return mode


def _special(source: Source, mode: str) -> PatchParseError:
    kind = {"120000": "a symbolic link", "160000": "a submodule"}.get(mode, "no regular file")
    return source.refusal(
        "mode 100644 or 100755",
        reason="special_file",
        said=f"mode {mode} is {kind}, which a patch cannot change here",
        action="Leave that file out of the patch.",
    )
