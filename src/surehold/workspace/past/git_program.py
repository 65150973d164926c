"""What the program `git` says of the repository around a workspace: its tree, its index, and what it leaves to others."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from surehold.errors import InvalidArgument, NotFound

_PATHS_PER_CALL = 200
_NO_IDENTITY_SIGNS = ("Please tell me who you are", "empty ident name", "unable to auto-detect email")
_EMPTY_BLOBS = {
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFile:
    """One path in a tree or in the index."""

    mode: str
    blob: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """What the index holds at some paths."""

    files: dict[str, GitFile] = field(default_factory=dict[str, GitFile])
    unmerged: frozenset[str] = frozenset()
    """Those with an unsettled conflict."""


class GitProgram:
    """Runs `git` in the repository around a directory; keys are relative to that directory."""

    def __init__(self, root: str) -> None:
        self._root = root
        try:
            self._top = self.run("rev-parse", "--show-toplevel")
        except FileNotFoundError:
            message = "The program `git` was not found."
            raise NotFound(message, reason="no_git", action="Install git, or make it reachable by PATH.") from None
        except InvalidArgument:
            message = f"`{root}` is not in a git repository."
            raise NotFound(message, path=root, reason="no_repository", action="Make one with: git init") from None
        self._prefix = self.run("rev-parse", "--show-prefix")

    def run(self, *words: str, stdin: bytes = b"", env: dict[str, str] | None = None, check: bool = True) -> str:
        """Return what git prints."""
        return os.fsdecode(self.run_bytes(*words, stdin=stdin, env=env, check=check)).removesuffix("\n")

    def run_bytes(
        self, *words: str, stdin: bytes = b"", env: dict[str, str] | None = None, check: bool = True, cwd: str = ""
    ) -> bytes:
        """Return what git prints, as bytes; a failure is refused with what git said, unless it may fail."""
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

    def name_in_repository(self, key: str) -> str:
        return self._prefix + key

    def path_of(self, name: str) -> Path:
        """Return where git keeps something of its own."""
        return Path(self._root, self.run("rev-parse", "--git-path", name))

    def null_blob(self) -> str:
        """Return the name that means no object, as long as all names of this repository."""
        return "0" * (64 if self.run("rev-parse", "--show-object-format", check=False) == "sha256" else 40)

    def read_tree(self, commit: str, keys: Iterable[str]) -> dict[str, GitFile]:
        """Return what a commit holds at some paths; directories and submodules are left out."""
        found = dict[str, GitFile]()
        for names in self._name_parts(keys) if commit else ():
            rows = self.run_bytes("ls-tree", "-z", "--full-tree", commit, "--", *names)
            for mode, (kind, blob), name in _split_rows(rows):
                if kind == "blob" and name in names:
                    found[names[name]] = GitFile(mode=mode, blob=blob)
        return found

    def read_index(self, keys: Iterable[str]) -> StagedFiles:
        """Return what the index holds at some paths; a file that is only intended to be added is not in it."""
        files, unmerged = dict[str, GitFile](), set[str]()
        for names in self._name_parts(keys):
            places = [f":(top,literal){name}" for name in names]
            for mode, (blob, stage), name in _split_rows(
                self.run_bytes("ls-files", "-z", "-s", "--full-name", "--", *places)
            ):
                if stage != "0":
                    unmerged.add(names[name])
                elif name in names:
                    files[names[name]] = GitFile(mode=mode, blob=blob)
        for key in [key for key, one in files.items() if one.blob in _EMPTY_BLOBS and self._is_intended(key)]:
            del files[key]
        return StagedFiles(files=files, unmerged=frozenset(unmerged))

    def _is_intended(self, key: str) -> bool:
        """Tell whether the index has only a note that a file will be added (`git add -N`)."""
        place = f":(top,literal){self.name_in_repository(key)}"
        return bool(self.run_bytes("diff", "--name-only", "-z", "--diff-filter=A", "--", place))

    def find_ignored(self, keys: Sequence[str]) -> set[str]:
        """Return those of some files that git ignores."""
        names = {self.name_in_repository(key): key for key in keys}
        if not names:
            return set()
        stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
        found = self.run_bytes("check-ignore", "-z", "--stdin", stdin=stdin, check=False, cwd=self._top)
        return {names[os.fsdecode(name)] for name in found.split(b"\0") if name}

    def find_foreign(self, keys: Iterable[str]) -> set[str]:
        """Return those of some files that are in a repository of their own: a submodule, or one that lies in this one."""
        known = dict[PurePosixPath, bool]()
        return {key for key in keys if any(self._is_repository(one, known) for one in PurePosixPath(key).parents)}

    def _is_repository(self, directory: PurePosixPath, known: dict[PurePosixPath, bool]) -> bool:
        if directory not in known:
            known[directory] = directory != PurePosixPath() and os.path.lexists(Path(self._root, directory, ".git"))
        return known[directory]

    def _name_parts(self, keys: Iterable[str]) -> Iterator[dict[str, str]]:
        """Yield keys by their names in the repository, as many as one call may have."""
        names = [(self.name_in_repository(key), key) for key in dict.fromkeys(keys)]
        for start in range(0, len(names), _PATHS_PER_CALL):
            yield dict(names[start : start + _PATHS_PER_CALL])


def _split_rows(rows: bytes) -> Iterator[tuple[str, tuple[str, str], str]]:
    """Yield mode, the two words after it, and name of what `ls-tree` and `ls-files` list."""
    for row in rows.split(b"\0"):
        if row:
            facts, name = row.split(b"\t", 1)
            mode, one, other = facts.decode().split()
            yield mode, (one, other), os.fsdecode(name)


def _git_failed_error(word: str, said: str) -> InvalidArgument:
    if any(sign in said for sign in _NO_IDENTITY_SIGNS):
        action = "Tell it: git config user.name NAME; git config user.email ADDRESS"
        return InvalidArgument("Git does not know who you are.", reason="no_git_identity", action=action)
    return InvalidArgument(
        f"`git {word}` failed and said `{said[:500]}`.",
        reason="git_failed",
        action="Look at what `git status` says, and try again.",
    )
