"""Deletes and moves a path of any kind, as frameworks expect it: files by the session, and then what is left of directories."""

from contextlib import suppress
from pathlib import PurePosixPath

from surehold import Delete, Keep, Proposal, Receipt, SureholdError, Unchanged
from surehold.adapters.shell import run_words
from surehold.errors import InvalidArgument, NotAFile
from surehold.library.session import AgentSession

_MAX_FILES = 50_000


def delete_path(session: AgentSession, path: str, *, tool: str) -> Receipt:
    """Delete a file, or a directory with all that is in it, unless a file of it changed since this session read it."""
    place = _place_of(session, path)
    try:
        return session.submit(_deletion(path), operation="delete", tool=tool)
    except NotAFile as error:
        if error.reason != "is_a_directory":
            raise
    files = [_deletion(name) for name in _files_below(session, path)]
    receipt = session.submit(*files, operation="delete", tool=tool) if files else Receipt(change_id="", files=())
    _run_quietly(session, "rm", "-r", "--", str(place))
    return receipt


def move_path(session: AgentSession, path: str, to_path: str, *, tool: str) -> Receipt:
    """Move a file, or a directory with all files in it; what exists at the new name is never overwritten."""
    place = _place_of(session, path)
    _place_of(session, to_path)
    try:
        return session.submit(_movement(path, to_path), operation="move", tool=tool)
    except NotAFile as error:
        if error.reason != "is_a_directory":
            raise
    names = _files_below(session, path)
    moves = [_movement(name, str(PurePosixPath(to_path, PurePosixPath(name).relative_to(path)))) for name in names]
    if not moves:
        raise InvalidArgument(f"No file is in `{path}`.", path=path, reason="empty_directory", action="Make a new one.")
    receipt = session.submit(*moves, operation="move", tool=tool)
    _run_quietly(session, "find", str(place), "-depth", "-type", "d", "-empty", "-delete")
    return receipt


def _place_of(session: AgentSession, path: str) -> PurePosixPath:
    target = session.workspace.target(path)
    if not target.parts:
        action = "Name something inside of it."
        raise InvalidArgument("The workspace itself stays where it is.", path=path, reason="is_a_root", action=action)
    return PurePosixPath(target.root, *target.parts)


def _files_below(session: AgentSession, path: str) -> list[str]:
    listed = session.list_directory(
        path, recursive=True, max_depth=32, include_hidden=True, respect_ignore=False, max_entries=_MAX_FILES
    )
    if listed.truncated:
        action = "Name one of the directories in it."
        raise InvalidArgument(f"Too much is in `{path}` for one call.", path=path, reason="too_many", action=action)
    return [str(PurePosixPath(path, one["relativePath"])) for one in listed.entries if one["type"] == "file"]


def _deletion(path: str) -> Proposal:
    return Proposal(path=path, edit=Delete(), proof=Unchanged())


def _movement(path: str, to_path: str) -> Proposal:
    return Proposal(path=path, to_path=to_path, edit=Keep(), proof=Unchanged())


def _run_quietly(session: AgentSession, *words: str) -> None:
    """Remove what only a program can; without capture, empty directories stay."""
    with suppress(SureholdError):
        run_words(session, words)
