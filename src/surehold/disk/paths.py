"""Resolves a path as the caller typed it to a `Target`, or refuses it.

Rules:
1. Nothing is expanded: no tilde, no variable, no URL. The path is used exactly as typed.
2. Names are compared component by component, never as a string prefix.
3. `..` means the parent of the real directory that the walk has reached.
4. A link is followed as long as it stays below a root, at most 40 links per path. Otherwise the path is refused.
5. The result may be outdated at once. It contains no link, and `Tree.open_target` follows none, so it cannot lead out.
"""

import errno
import os
import stat
from functools import cache

from surehold.disk.base import Target
from surehold.disk.errno_errors import as_surehold_error, not_a_directory_error, symlink_escape_error
from surehold.disk.kernel import O_NOFOLLOW, Unsupported, close_after
from surehold.disk.tree import DIRECTORY_FLAGS, DiskRoot, Tree, split_path
from surehold.errors import InvalidArgument, NotFound, OutsideWorkspace

_MAX_LINKS = 40
_MAX_PATH_BYTES = 4096
_MAX_NAME_BYTES = 255
_MAX_RACES = 100


def resolve_path(tree: Tree, path: str) -> Target:
    """Return the target that `path` leads to. The leaf, and directories above it, need not exist."""
    spelled = check_spelling(path)
    root, names = _starting_root(tree, spelled, path)
    try:
        target = _resolve_plain(tree, root, names) or _PathWalk(tree, path).resolve_names(root, names)
        if spelled.endswith(("/", "/.")) and target.parts:
            _check_directory(tree, target, path)
    except OSError as error:
        raise as_surehold_error(error, path) from error
    return target


def check_spelling(path: str) -> str:
    """Return the path in its one spelling, or refuse what no file system can name."""
    if not path:
        raise InvalidArgument("The path is empty.", reason="empty_path", action="Name a file.")
    if "\0" in path:
        raise InvalidArgument("The path contains a NUL character.", reason="nul_in_path")
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            "The path contains half a character (a lone surrogate).", reason="lone_surrogate"
        ) from error
    if len(raw) > _MAX_PATH_BYTES:
        raise _too_long_error(path, f"The path has {len(raw)} bytes, more than {_MAX_PATH_BYTES}.", "path_too_long")
    for name in raw.split(b"/"):
        if len(name) > _MAX_NAME_BYTES:
            message = f"A name in the path has {len(name)} bytes, more than {_MAX_NAME_BYTES}."
            raise _too_long_error(path, message, "name_too_long")
    # Escaped bytes that do form a character must not make a second name for the same file.
    return raw.decode("utf-8", "surrogateescape")


def _too_long_error(path: str, message: str, reason: str) -> InvalidArgument:
    return InvalidArgument(message, path=f"{path[:80]}…", reason=reason, action="Use a shorter path.")


def _starting_root(tree: Tree, spelled: str, path: str) -> tuple[DiskRoot, list[str]]:
    names = split_path(spelled)
    if not spelled.startswith("/"):
        return tree.roots[0], list(names)
    found = _below_root(tree, names)
    if found is None:
        raise OutsideWorkspace(f"`{path}` is in none of the workspace roots.", path=path, reason="absolute")
    return found


def _below_root(tree: Tree, names: tuple[str, ...]) -> tuple[DiskRoot, list[str]] | None:
    """Find the outermost root that these absolute names lie in, so that `..` may move between nested roots."""
    spellings = [(spelling, root) for root in tree.roots for spelling in root.spellings]
    fitting = [(spelling, root) for spelling, root in spellings if names[: len(spelling)] == spelling]
    if not fitting:
        return None
    spelling, root = min(fitting, key=lambda pair: len(pair[0]))
    return root, list(names[len(spelling) :])


def _resolve_plain(tree: Tree, root: DiskRoot, names: list[str]) -> Target | None:
    """Resolve a path without `..` and links in two system calls; None when it is not that simple."""
    if not names:
        return tree.target_of(root.names)
    if ".." in names:
        return None
    above = "/".join(names[:-1]) or "."
    try:
        with close_after(tree.kernel.open_beneath(tree.root_fd(root), above, DIRECTORY_FLAGS)) as parent:
            leaf = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
    except Unsupported:
        return None
    except FileNotFoundError:
        pass  # no link came before what is missing, or the answer were ELOOP
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    else:
        if stat.S_ISLNK(leaf.st_mode):
            return None
    return tree.target_of((*root.names, *names))


def _check_directory(tree: Tree, target: Target, path: str) -> None:
    try:
        os.close(tree.open_target(target, DIRECTORY_FLAGS))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidArgument(
            f"`{path}` ends in a slash, but no directory is there.",
            path=path,
            reason="trailing_slash",
            action="Leave the slash out to name a file.",
        ) from error


class _PathWalk:
    """One careful walk, a name at a time."""

    def __init__(self, tree: Tree, path: str) -> None:
        self.tree = tree
        self.path = path
        self.hops = 0
        self.races = 0

    def resolve_names(self, root: DiskRoot, names: list[str]) -> Target:
        self.root = root
        self.parts: list[str] = []
        self.pending = names[::-1]
        self.typed = len(names)
        self.fd = self._open_here()
        try:
            while self.pending:
                self._take_next()
        finally:
            os.close(self.fd)
        return self.tree.target_of((*self.root.names, *self.parts))

    def _take_next(self) -> None:
        """Take one name; what a link says counts as names still to be taken."""
        from_link = len(self.pending) > self.typed
        name = self.pending.pop()
        self.typed = min(self.typed, len(self.pending))
        if name == "..":
            self._climb_up(from_link=from_link)
            return
        try:
            status = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            self._take_missing(name)
            return
        if stat.S_ISLNK(status.st_mode):
            self._follow_link(name, status)
        elif stat.S_ISDIR(status.st_mode):
            self._descend_into(name)
        elif self.pending:
            raise not_a_directory_error(self.path)
        else:
            self.parts.append(name)

    def _take_missing(self, name: str) -> None:
        """Below what is missing nothing can be a link, and nothing has a parent."""
        rest = self.pending[::-1]
        if ".." in rest:
            raise NotFound(f"There is no directory `{name}` in `{self.path}`.", path=self.path)
        self.parts += [name, *rest]
        self.pending.clear()

    def _descend_into(self, name: str) -> None:
        try:
            below = os.open(name, DIRECTORY_FLAGS | O_NOFOLLOW, dir_fd=self.fd)
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
                raise
            self._retry_name(name)
            return
        os.close(self.fd)
        self.fd = below
        self.parts.append(name)

    def _retry_name(self, name: str) -> None:
        self.races += 1
        if self.races > _MAX_RACES:
            raise symlink_escape_error(self.path)
        self.pending.append(name)

    def _climb_up(self, *, from_link: bool) -> None:
        if self.parts:
            self.parts.pop()
            self._reopen_here()
        elif not from_link:
            raise OutsideWorkspace(
                f"`..` in `{self.path}` leads out of the workspace.", path=self.path, reason="dotdot"
            )
        else:
            # A link between two roots may climb out of one and come down in the other.
            above = list(self.root.names[:-1])
            while self.pending and self.pending[-1] == "..":
                self.pending.pop()
                above = above[:-1]
            self._enter_absolute((*above, *self.pending[::-1]))

    def _follow_link(self, name: str, status: os.stat_result) -> None:
        if status.st_dev == _proc_device():
            raise symlink_escape_error(self.path)
        try:
            goal = os.readlink(name, dir_fd=self.fd)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.ENOENT}:
                raise
            self._retry_name(name)
            return
        self.hops += 1  # a link that vanished before it was read is a race, not a hop
        if self.hops > _MAX_LINKS:
            raise NotFound(
                f"`{self.path}` passes through more than {_MAX_LINKS} symbolic links.",
                path=self.path,
                reason="symlink_loop",
                action="Name the file itself.",
            )
        names = split_path(goal)
        if goal.startswith("/"):
            self._enter_absolute((*names, *self.pending[::-1]))
        else:
            self.pending += names[::-1]

    def _enter_absolute(self, names: tuple[str, ...]) -> None:
        found = _below_root(self.tree, names)
        if found is None:
            raise symlink_escape_error(self.path)
        self.root, rest = found
        self.parts = []
        self.pending = rest[::-1]
        self.typed = min(self.typed, len(rest))
        self._reopen_here()

    def _open_here(self) -> int:
        return self.tree.open_parts(self.root, tuple(self.parts), DIRECTORY_FLAGS)

    def _reopen_here(self) -> None:
        fd = self._open_here()
        os.close(self.fd)
        self.fd = fd


@cache
def _proc_device() -> int:
    """Return the device of /proc: its links are doors, not texts."""
    try:
        return os.stat("/proc").st_dev  # noqa: PTH116  # no pathlib in the hot path
    except OSError:
        return -1
