"""Puts exactly the selected changes into a git commit.

1. The commit is built beside the repository's index, in one of its own: HEAD with the selected changes, nothing else.
2. Where a file holds other work as well, the selected changes are merged into HEAD's version of it; that must be clean.
3. The working files and the stash are never touched. In the index, the committed paths follow; what is staged stays.
4. A repository in the middle of a merge, a rebase or the like is left alone, and so is one whose index is locked.
"""

import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from surehold.errors import InvalidArgument, NotFound, UndoConflict
from surehold.text.merge import MergeConflict, merge_changes
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.workspace.past.net_diff import FileNetDiff

_UNFINISHED = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}
_ABSENT_MODE, _LINK_MODE = "0", "120000"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCommit:
    """A commit that was made, or would be."""

    sha: str
    """Empty for a dry run."""
    paths: tuple[str, ...]
    """Every name that is another one in the commit; a file that was moved has two."""
    files: int = 0
    ignored: tuple[str, ...] = ()
    """Changed files that git ignores; they are not committed."""
    message: str = ""
    left_staged: tuple[str, ...] = ()
    """Paths whose staged content could not follow the commit, and stays as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TreeFile:
    mode: str
    blob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileUpdate:
    """One path in the new commit; no blob means that it is gone."""

    key: str
    mode: str
    blob: str
    index: _TreeFile | None
    """What the index gets; None to leave it."""


class GitRepository:
    """The repository around a workspace, spoken to by the program `git`."""

    def __init__(self, root: str) -> None:
        self._root = root
        try:
            self._top = self._git("rev-parse", "--show-toplevel")
        except FileNotFoundError:
            message = "The program `git` was not found."
            raise NotFound(message, reason="no_git", action="Install git, or make it reachable by PATH.") from None
        except InvalidArgument:
            message = f"`{root}` is not in a git repository."
            raise NotFound(message, path=root, reason="no_repository", action="Make one with: git init") from None
        self._prefix = self._git("rev-parse", "--show-prefix")

    def refuse_unfinished(self) -> None:
        """Refuse a repository that is in the middle of something, or locked."""
        for name, what in _UNFINISHED.items():
            if self._git_path(name).exists():
                message = f"The repository is in the middle of {what}."
                raise InvalidArgument(message, reason="repository_busy", action=f"Finish {what}, or abort it, first.")
        lock = self._git_path("index.lock")
        if lock.exists():
            action = f"Wait for the other git program; if there is none, remove {lock}."
            raise InvalidArgument("The index of the repository is locked.", reason="repository_busy", action=action)

    def commit(
        self,
        files: Sequence[FileNetDiff],
        message: str | Callable[[Sequence[str]], str],
        trailers: Sequence[str],
        *,
        dry_run: bool,
    ) -> GitCommit:
        """Make a commit of what some changes did to these files; a message can be made of the names that are committed."""
        self.refuse_unfinished()
        conflict = next((one for one in files if one.conflict), None)
        if conflict:
            text = f"`{conflict.key}` cannot be committed by itself: {conflict.conflict}."
            raise UndoConflict(text, path=conflict.key, action="Select the other changes of these lines as well.")
        if elsewhere := next((one.key for one in files if os.path.isabs(one.key)), ""):  # noqa: PTH117 - a key, not a path
            message = f"`{elsewhere}` is in another root than the repository."
            raise InvalidArgument(message, path=elsewhere, reason="other_root", action="Commit each root by itself.")
        ignored = self.find_ignored([one.to_key or one.key for one in files])
        head = self._head()
        wanted = [one for one in files if (one.to_key or one.key) not in ignored and _git_holds(one)]
        planned = {one.to_key or one.key: self._plan_file(one, head) for one in wanted}
        updates = [update for found in planned.values() for update in found]
        if not updates:
            raise _nothing_to_commit_error(files, wanted)
        names = tuple(sorted(name for name, found in planned.items() if found))
        whole = self._with_trailers(message if isinstance(message, str) else message(names), trailers)
        paths = tuple(sorted({one.key for one in updates}))
        if dry_run:
            return GitCommit(sha="", paths=paths, files=len(names), ignored=tuple(sorted(ignored)), message=whole)
        sha = self._write_commit(updates, whole, head)
        left = self._update_index(updates)
        return GitCommit(
            sha=sha, paths=paths, files=len(names), ignored=tuple(sorted(ignored)), message=whole, left_staged=left
        )

    # What goes into the commit.

    def _plan_file(self, file: FileNetDiff, head: str) -> list[_FileUpdate]:
        path, to_path = file.key, file.to_key or file.key
        updates = list[_FileUpdate]()
        if path != to_path and self._read_tree_file(head, path):
            updates.append(self._removal(path, head))
        known = self._read_tree_file(head, path) or self._read_tree_file(head, to_path)
        if not file.after.exists:
            return [*updates, self._removal(path, head)] if self._read_tree_file(head, path) else updates
        content = self._apply_to(self._read_blob(known, to_path) if known else ABSENT, file)
        mode = file.after.meta.mode if file.after.meta else None
        if mode is None:
            mode = self._mode_on_disk(to_path)
        git_mode = known.mode if known and mode is None else "100755" if mode and mode & 0o100 else "100644"
        if file.after_version and file.after_version.kind == "link":
            git_mode = _LINK_MODE
        filters = "--no-filters" if git_mode == _LINK_MODE else f"--path={self._in_repository(to_path)}"
        blob = self._git("hash-object", "-w", "--stdin", filters, stdin=content)
        there = self._read_tree_file(head, to_path)
        if there == _TreeFile(mode=git_mode, blob=blob):
            return updates
        new = _TreeFile(mode=git_mode, blob=blob)
        index = self._follow_in_index(to_path, there, new)
        return [*updates, _FileUpdate(key=to_path, mode=git_mode, blob=blob, index=index)]

    def _mode_on_disk(self, key: str) -> int | None:
        try:
            return (Path(self._root) / key).stat().st_mode
        except OSError:
            return None

    def _removal(self, key: str, head: str) -> _FileUpdate:
        staged, there = self._read_staged(key), self._read_tree_file(head, key)
        gone = _TreeFile(mode=_ABSENT_MODE, blob="")
        return _FileUpdate(key=key, mode=_ABSENT_MODE, blob="", index=gone if staged in {there, None} else None)

    def _apply_to(self, committed: Snapshot, file: FileNetDiff) -> bytes:
        """Return what a file is with the selected changes alone, on top of what is committed."""
        if committed.data == file.before.data or not committed.exists:
            return file.after.data
        if committed.data == file.after.data:
            return file.after.data
        merged = merge_changes(file.before, committed, file.after)
        if isinstance(merged, MergeConflict):
            if not isinstance(merge_changes(file.after, committed, file.before), MergeConflict):
                return committed.data  # they could be taken out of it, so they are in it
            lines = ", ".join(map(str, merged.lines[:10]))
            where = f" (lines {lines})" if lines else ""
            message = f"`{file.key}` in HEAD does not have the lines that were changed{where}."
            raise UndoConflict(message, path=file.key, action="Commit the earlier work on these lines first.")
        return merged

    def _follow_in_index(self, key: str, there: _TreeFile | None, new: _TreeFile) -> _TreeFile | None:
        """Return what the index holds after the commit: the new version, with what else was staged in the file."""
        staged = self._read_staged(key)
        if staged == there or (staged is None and there is None):
            return new
        if staged is None or staged == new or there is None:
            return None
        base, ours, theirs = (self._read_blob(one, key) for one in (there, staged, new))
        merged = merge_changes(base, ours, theirs)
        if isinstance(merged, MergeConflict):
            return None
        blob = self._git("hash-object", "-w", "--stdin", f"--path={self._in_repository(key)}", stdin=merged)
        return _TreeFile(mode=staged.mode, blob=blob)

    def _write_commit(self, updates: Sequence[_FileUpdate], message: str, head: str) -> str:
        with tempfile.TemporaryDirectory(dir=self._git_path("."), prefix="surehold-") as directory:
            index = {"GIT_INDEX_FILE": str(Path(directory) / "index")}
            self._git("read-tree", head or "--empty", env=index)
            rows = [(one.mode, one.blob, one.key) for one in updates]
            self._put_in_index(rows, env=index)
            tree = self._git("write-tree", env=index)
        parent = ["-p", head] if head else []
        sign = ["-S"] if self._setting("commit.gpgsign") == "true" else []
        sha = self._git("commit-tree", tree, *parent, *sign, "-F", "-", stdin=_to_bytes(message))
        subject = message.partition("\n")[0]
        self._git("update-ref", "-m", f"commit: {subject}", "HEAD", sha, head or "0" * len(sha))
        return sha

    def _update_index(self, updates: Sequence[_FileUpdate]) -> tuple[str, ...]:
        rows = [(one.index.mode, one.index.blob, one.key) for one in updates if one.index]
        if rows:
            self._put_in_index(rows, env={})
            self._git("update-index", "-q", "--refresh", check=False)
        kept = {one.key: self._read_staged(one.key) for one in updates if not one.index}
        blobs = {one.key: one.blob for one in updates}
        return tuple(path for path, staged in kept.items() if (staged.blob if staged else "") != blobs[path])

    def _put_in_index(self, rows: Sequence[tuple[str, str, str]], *, env: dict[str, str]) -> None:
        lines = [
            f"{mode} {blob or '0' * 40}\t".encode() + os.fsencode(self._in_repository(path)) + b"\0"
            for mode, blob, path in rows
        ]
        self._git("update-index", "-z", "--index-info", stdin=b"".join(lines), env=env)

    # What git knows.

    def _head(self) -> str:
        try:
            return self._git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except InvalidArgument:
            return ""  # no commit yet

    def _read_tree_file(self, head: str, key: str) -> _TreeFile | None:
        if not head:
            return None
        row = self._git_bytes("ls-tree", "-z", "--full-tree", head, "--", self._in_repository(key))
        if not row:
            return None
        mode, kind, blob = row.split(b"\t", 1)[0].decode().split(" ")
        return _TreeFile(mode=mode, blob=blob) if kind == "blob" else None

    def _read_staged(self, key: str) -> _TreeFile | None:
        row = self._git_bytes("ls-files", "-z", "-s", "--full-name", "--", f":(top,literal){self._in_repository(key)}")
        if not row:
            return None
        mode, blob, _ = row.split(b"\t", 1)[0].decode().split(" ")
        return _TreeFile(mode=mode, blob=blob)

    def _read_blob(self, file: _TreeFile, key: str) -> Snapshot:
        """Return a blob as it would be in the working tree."""
        name = f"--path={self._in_repository(key)}"
        return Snapshot(self._git_bytes("cat-file", "--filters", name, file.blob))

    def find_ignored(self, paths: Sequence[str]) -> set[str]:
        """Return those of some files that git ignores."""
        names = {self._in_repository(path): path for path in paths}
        if not names:
            return set()
        stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
        found = self._git_bytes("check-ignore", "-z", "--stdin", stdin=stdin, check=False, cwd=self._top)
        return {names[os.fsdecode(name)] for name in found.split(b"\0") if name}

    def _with_trailers(self, message: str, trailers: Sequence[str]) -> str:
        options = [word for one in trailers for word in ("--trailer", one)]
        return self._git_bytes("interpret-trailers", *options, stdin=_to_bytes(message.rstrip("\n") + "\n")).decode(
            "utf-8", "surrogateescape"
        )

    def _setting(self, name: str) -> str:
        return self._git("config", "--type=bool", "--get", name, check=False)

    def _in_repository(self, key: str) -> str:
        return self._prefix + key

    def _git_path(self, name: str) -> Path:
        return Path(self._root, self._git("rev-parse", "--git-path", name))

    def _git(self, *words: str, stdin: bytes = b"", env: dict[str, str] | None = None, check: bool = True) -> str:
        return os.fsdecode(self._git_bytes(*words, stdin=stdin, env=env, check=check)).removesuffix("\n")

    def _git_bytes(
        self, *words: str, stdin: bytes = b"", env: dict[str, str] | None = None, check: bool = True, cwd: str = ""
    ) -> bytes:
        environment = {**os.environ, "GIT_LITERAL_PATHSPECS": "0", "LC_ALL": "C", **(env or {})}
        done = subprocess.run(  # noqa: S603 - the words are ours, the paths are data
            ["git", *words],  # noqa: S607 - the person's own git
            cwd=cwd or self._root,
            env=environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
        if check and done.returncode:
            raise _git_failed_error(words[0], done.stderr.decode("utf-8", "replace").strip())
        return done.stdout


def _nothing_to_commit_error(files: Sequence[FileNetDiff], wanted: Sequence[FileNetDiff]) -> NotFound:
    if not files:
        text, action = "There is nothing to commit: the selected changes are undone.", "See: surehold log"
    elif not wanted:
        text, action = "There is nothing to commit: git ignores every selected file.", "See: git check-ignore -v FILE"
    else:
        text, action = "There is nothing to commit: the selected changes are in HEAD already.", "See: git log"
    return NotFound(text, reason="nothing_to_commit", action=action)


def _git_holds(file: FileNetDiff) -> bool:
    """Tell whether git knows of it: it has no directories, nor FIFOs."""
    versions = [one for one in (file.before_version, file.after_version) if one]
    return not versions or any(one.kind in {"file", "link"} for one in versions)


def _git_failed_error(word: str, said: str) -> InvalidArgument:
    return InvalidArgument(
        f"`git {word}` failed and said `{said[:500]}`.",
        reason="git_failed",
        action="Look at what `git status` says, and try again.",
    )


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
