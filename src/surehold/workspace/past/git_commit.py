"""Puts exactly the selected changes into a git commit.

1. The commit is built beside the repository's index, in one of its own: HEAD with the selected changes, nothing else.
2. Where a file holds other work as well, the selected changes are merged into HEAD's version of it; that must be clean.
3. The working files and the stash are never touched. In the index, the committed paths follow; what is staged stays.
4. A repository in the middle of a merge, a rebase or the like is left alone, and so is one whose index is locked.
5. What git ignores, and what is in a repository of its own, is left out and named.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha1
from pathlib import Path

from surehold.errors import InvalidArgument, NotFound, UndoConflict
from surehold.text.merge import MergeConflict, merge_changes
from surehold.text.snapshot import Snapshot
from surehold.workspace.past.git_program import GitFile, GitProgram, StagedFiles
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

    sha: str = ""
    """Empty for a dry run."""
    paths: tuple[str, ...]
    """Every name that is another one in the commit; a file that was moved has two."""
    files: tuple[str, ...] = ()
    """The files, each once: a moved one by both of its names."""
    ignored: tuple[str, ...] = ()
    """Changed files that git ignores; they are not committed."""
    foreign: tuple[str, ...] = ()
    """Changed files that are in a repository of their own; they are not committed either."""
    message: str = ""
    left_staged: tuple[str, ...] = ()
    """Paths whose staged content could not follow the commit, and stays as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileUpdate:
    """One path in the new commit; no blob means that it is gone."""

    key: str
    mode: str
    blob: str
    index: GitFile | None
    """What the index gets; None to leave it."""


class GitRepository:
    """The repository around a workspace, as far as a commit needs it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._git = GitProgram(root)

    def refuse_unfinished(self) -> None:
        """Refuse a repository that is in the middle of something, or locked."""
        for name, what in _UNFINISHED.items():
            if self._git.path_of(name).exists():
                message = f"The repository is in the middle of {what}."
                raise InvalidArgument(message, reason="repository_busy", action=f"Finish {what}, or abort it, first.")
        lock = self._git.path_of("index.lock")
        if lock.exists():
            action = f"Wait for the other git program; if there is none, remove {lock}."
            raise InvalidArgument("The index of the repository is locked.", reason="repository_busy", action=action)

    def find_left_out(self, keys: Sequence[str]) -> tuple[set[str], set[str]]:
        """Return those of some files that git ignores, and those that are in a repository of their own."""
        foreign = self._git.find_foreign(keys)
        return self._git.find_ignored([key for key in keys if key not in foreign]), foreign

    def commit(
        self,
        files: Sequence[FileNetDiff],
        message: str | Callable[[Sequence[str], AbstractSet[str]], str],
        trailers: Sequence[str] | Callable[[AbstractSet[str]], Sequence[str]],
        *,
        dry_run: bool,
        progress: Callable[[int, int], object] = lambda _done, _total: None,
    ) -> GitCommit:
        """Make a commit of what some changes did to these files.

        Message and trailers can be made of what is known then: the names that are committed, and those that HEAD has already.
        """
        self.refuse_unfinished()
        _refuse_other_root(files)
        ignored, foreign = self.find_left_out([one.to_key or one.key for one in files])
        wanted = [one for one in files if (one.to_key or one.key) not in ignored | foreign and _git_holds(one)]
        _refuse_conflict(wanted)
        plan = _CommitPlan(self._root, self._git, wanted, dry_run=dry_run)
        planned = list[tuple[FileNetDiff, list[_FileUpdate]]]()
        for number, one in enumerate(wanted):
            progress(number, len(wanted))
            planned.append((one, plan.plan_file(one)))
        updates = [update for _, found in planned for update in found]
        if not updates:
            raise _nothing_to_commit_error(files, wanted)
        plan.refuse_unmerged(updates)
        names = sorted(one.to_key or one.key for one, found in planned if found)
        settled = _names_of(one for one, found in planned if not found) - _names_of(
            one for one, found in planned if found
        )
        text = message if isinstance(message, str) else message(names, settled)
        made = GitCommit(
            paths=tuple(sorted({one.key for one in updates})),
            files=tuple(f"{one.key} → {one.to_key}" if one.to_key else one.key for one, found in planned if found),
            ignored=tuple(sorted(ignored)),
            foreign=tuple(sorted(foreign)),
            message=self._with_trailers(text, trailers(settled) if callable(trailers) else trailers),
        )
        if dry_run:
            return made
        sha = self._write_commit(updates, made.message, plan.head)
        return replace(made, sha=sha, left_staged=self._update_index(updates))

    def _write_commit(self, updates: Sequence[_FileUpdate], message: str, head: str) -> str:
        with tempfile.TemporaryDirectory(dir=self._git.path_of("."), prefix="surehold-") as directory:
            index = {"GIT_INDEX_FILE": str(Path(directory) / "index")}
            self._git.run("read-tree", head or "--empty", env=index)
            rows = [(one.mode, one.blob, one.key) for one in updates]
            self._put_in_index(rows, env=index)
            tree = self._git.run("write-tree", env=index)
        parent = ["-p", head] if head else []
        sign = ["-S"] if self._setting("commit.gpgsign") == "true" else []
        sha = self._git.run("commit-tree", tree, *parent, *sign, "-F", "-", stdin=_to_bytes(message))
        subject = message.partition("\n")[0]
        self._git.run("update-ref", "-m", f"commit: {subject}", "HEAD", sha, head or "0" * len(sha))
        return sha

    def _update_index(self, updates: Sequence[_FileUpdate]) -> tuple[str, ...]:
        rows = [(one.index.mode, one.index.blob, one.key) for one in updates if one.index]
        if rows:
            self._put_in_index(rows, env={})
            self._git.run("update-index", "-q", "--refresh", check=False)
        kept = {one.key: one.blob for one in updates if not one.index}
        staged = self._git.read_index(kept).files
        return tuple(key for key, blob in kept.items() if (staged[key].blob if key in staged else "") != blob)

    def _put_in_index(self, rows: Sequence[tuple[str, str, str]], *, env: dict[str, str]) -> None:
        null = self._git.null_blob()
        lines = [
            f"{mode} {blob or null}\t".encode() + os.fsencode(self._git.name_in_repository(key)) + b"\0"
            for mode, blob, key in rows
        ]
        self._git.run("update-index", "-z", "--index-info", stdin=b"".join(lines), env=env)

    def _with_trailers(self, message: str, trailers: Sequence[str]) -> str:
        options = [word for one in trailers for word in ("--trailer", one)]
        whole = _to_bytes(message.rstrip("\n") + "\n")
        return self._git.run_bytes("interpret-trailers", *options, stdin=whole).decode("utf-8", "surrogateescape")

    def _setting(self, name: str) -> str:
        return self._git.run("config", "--type=bool", "--get", name, check=False)


class _CommitPlan:
    """Works out what each file is in the commit and in the index; nothing is changed but new objects."""

    def __init__(self, root: str, git: GitProgram, files: Sequence[FileNetDiff], *, dry_run: bool) -> None:
        self._root, self._git = root, git
        self._dry_run = dry_run
        self.head = self._find_head()
        keys = [key for one in files for key in (one.key, one.to_key) if key]
        self._tree = git.read_tree(self.head, keys)
        self._index: StagedFiles = git.read_index(keys)

    def _find_head(self) -> str:
        try:
            return self._git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except InvalidArgument:
            return ""  # no commit yet

    def refuse_unmerged(self, updates: Sequence[_FileUpdate]) -> None:
        """Refuse if one of the paths has a conflict in the index: only a person can settle it."""
        if key := next((one.key for one in updates if one.key in self._index.unmerged), ""):
            message = f"`{key}` has a merge conflict in the index."
            action = f"Settle it first, then: git add {key}"
            raise InvalidArgument(message, path=key, reason="repository_busy", action=action)

    def plan_file(self, file: FileNetDiff) -> list[_FileUpdate]:
        path, to_path = file.key, file.to_key or file.key
        moved = [self._remove(path)] if path != to_path and path in self._tree else []
        if not file.after.exists:
            return [*moved, self._remove(path)] if path in self._tree else moved
        known, there = self._tree.get(path) or self._tree.get(to_path), self._tree.get(to_path)
        content = self._apply_to(known, file, to_path)
        mode = file.after.meta.mode if file.after.meta else None
        if mode is None:
            mode = self._mode_on_disk(to_path)
        git_mode = known.mode if known and mode is None else "100755" if mode and mode & 0o100 else "100644"
        if file.after_version and file.after_version.kind == "link":
            git_mode = _LINK_MODE
        new = GitFile(mode=git_mode, blob=self._store(content, to_path, is_link=git_mode == _LINK_MODE))
        if there == new:
            return moved
        index = self._follow_in_index(to_path, there, new)
        return [*moved, _FileUpdate(key=to_path, mode=git_mode, blob=new.blob, index=index)]

    def _store(self, content: bytes, key: str, *, is_link: bool = False) -> str:
        filters = "--no-filters" if is_link else f"--path={self._git.name_in_repository(key)}"
        return self._git.run("hash-object", *(() if self._dry_run else ("-w",)), "--stdin", filters, stdin=content)

    def _mode_on_disk(self, key: str) -> int | None:
        try:
            return (Path(self._root) / key).stat().st_mode
        except OSError:
            return None

    def _remove(self, key: str) -> _FileUpdate:
        staged, there = self._index.files.get(key), self._tree.get(key)
        gone = GitFile(mode=_ABSENT_MODE, blob="")
        return _FileUpdate(key=key, mode=_ABSENT_MODE, blob="", index=gone if staged in {there, None} else None)

    def _apply_to(self, known: GitFile | None, file: FileNetDiff, key: str) -> bytes:
        """Return what a file is with the selected changes alone, on top of what is committed."""
        if known is None or known.blob in {_name_blob(file.before.data), _name_blob(file.after.data)}:
            return file.after.data
        committed = self._read_blob(known, key)
        if not committed.exists or committed.data in {file.before.data, file.after.data}:
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

    def _follow_in_index(self, key: str, there: GitFile | None, new: GitFile) -> GitFile | None:
        """Return what the index holds after the commit: the new version, with what else was staged in the file."""
        staged = self._index.files.get(key)
        if staged == there:
            return new
        if staged is None or staged == new or there is None or self._dry_run:
            return None
        base, ours, theirs = (self._read_blob(there, key), self._read_blob(staged, key), self._read_blob(new, key))
        merged = merge_changes(base, ours, theirs)
        if isinstance(merged, MergeConflict):
            return None
        return GitFile(mode=staged.mode, blob=self._store(merged, key))

    def _read_blob(self, file: GitFile, key: str) -> Snapshot:
        """Return a blob as it would be in the working tree."""
        name = f"--path={self._git.name_in_repository(key)}"
        return Snapshot(self._git.run_bytes("cat-file", "--filters", name, file.blob))


def _names_of(files: Iterable[FileNetDiff]) -> set[str]:
    return {name for one in files for name in (one.key, one.to_key) if name}


def _name_blob(data: bytes) -> str:
    """Return the name that git gives to a text in most repositories; elsewhere no blob has it."""
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _refuse_conflict(files: Sequence[FileNetDiff]) -> None:
    if conflict := next((one for one in files if one.conflict), None):
        text = f"`{conflict.key}` cannot be committed by itself: {conflict.conflict}."
        raise UndoConflict(text, path=conflict.key, action="Select the other changes of these lines as well.")


def _refuse_other_root(files: Sequence[FileNetDiff]) -> None:
    if elsewhere := next((one.key for one in files if os.path.isabs(one.key)), ""):  # noqa: PTH117 - a key, not a path
        message = f"`{elsewhere}` is in another root than the repository."
        raise InvalidArgument(message, path=elsewhere, reason="other_root", action="Commit each root by itself.")


def _nothing_to_commit_error(files: Sequence[FileNetDiff], wanted: Sequence[FileNetDiff]) -> NotFound:
    if not files:
        text, action = "There is nothing to commit: the selected changes are undone.", "See: surehold log"
    elif not wanted:
        text = "There is nothing to commit: git ignores every selected file, or another repository has it."
        action = "See: git check-ignore -v FILE"
    else:
        text, action = "There is nothing to commit: the selected changes are in HEAD already.", "See: git log"
    return NotFound(text, reason="nothing_to_commit", action=action)


def _git_holds(file: FileNetDiff) -> bool:
    """Tell whether git knows of it: it has no directories, nor FIFOs."""
    versions = [one for one in (file.before_version, file.after_version) if one]
    return not versions or any(one.kind in {"file", "link"} for one in versions)


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
