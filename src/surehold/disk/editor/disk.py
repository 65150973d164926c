"""A disk whose files may be open in an editor: unsaved text is what is read and edited.

Rules:
1. The disk decides which files exist; the editor decides what is in the files it has open. It is asked only about paths
   that were resolved and are regular files on the disk, within their size; never about anything outside the roots.
2. A path that the caller named is read as the editor shows it. What a search finds is read from the disk, where the
   search looked.
3. New text for a file goes through the editor, if the editor can hold it: UTF-8 without a byte order mark, line endings
   as it shows them. Everything else happens on the disk, and only to files without unsaved changes: creating, deleting
   and moving, other bytes, other encodings, modes. A new file is created on the disk, since only there an existing file
   cannot be overwritten.
4. All steps or none, as always: the editor's steps come last before those of the disk, and are undone when one fails.
5. A buffer that shows what was on the disk when we last looked, while the disk has changed since, has no unsaved
   changes: the editor has not noticed yet. The disk is right.
6. Recovery decides by what its own disk shows. With an editor it looks into the buffers. Without one it looks at the
   files, and touches only those that hold the new version; a change that reached only a buffer then counts as not made,
   and is an outside edit once it is saved. Both versions are among the blobs in any case.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from surehold.disk.base import (
    Create,
    Disk,
    EditorFiles,
    KeepBytes,
    Rename,
    Replace,
    SteadyFile,
    Step,
    StoredFile,
    Target,
    step_targets,
)
from surehold.disk.editor.buffer import BufferState, EditorWrite, interpret_buffer, is_binary, is_plain, may_be_saved
from surehold.disk.errno_errors import missing_error, too_large_error
from surehold.errors import FileTooLarge, RecoveryRequired, StaleFile, SureholdError, Unavailable
from surehold.text.snapshot import sha256_hex

MAX_EDITOR_BYTES = 4 << 20
"""Larger files are not read through an editor: one message holds all of the text, and not every client takes more."""
_PIECE_BYTES = 1 << 20
_TOO_LARGE_CAUTION = (
    "`{key}` is too large to be asked of the editor: whether it has unsaved changes there is not known."
)

_FileKey = tuple[str, tuple[str, ...]]


class DiscoveredTarget(Target):
    """A path that a search found, not one that a caller named."""

    __slots__ = ()


class EditorDisk:
    """A disk whose files may be open in an editor; safe to be used by several threads."""

    def __init__(self, disk: Disk, files: EditorFiles, *, largest: int = MAX_EDITOR_BYTES) -> None:
        self._disk = disk
        self._files = files
        self._largest = largest
        self._clean: dict[_FileKey, str] = {}
        """The text that the editor showed when it was last seen to be that of the disk, by its sha256."""
        self._cautions: dict[_FileKey, str] = {}
        # What concerns names, and locks against our own writers, is left to the disk.
        self.resolve, self.open_directory, self.close = disk.resolve, disk.open_directory, disk.close
        self.open_listing, self.stat_entries, self.read_heads = disk.open_listing, disk.stat_entries, disk.read_heads
        self.lock, self.remove_leftovers = disk.lock, disk.remove_leftovers
        self.locate, self.read_entry, self.lock_located = disk.locate, disk.read_entry, disk.lock_located
        self.missing_directories, self.remove_empty = disk.missing_directories, disk.remove_empty

    @property
    def roots(self) -> tuple[str, ...]:
        return self._disk.roots

    @property
    def shows_saved(self) -> bool:
        return False

    @property
    def is_coherent(self) -> bool:
        return self._disk.is_coherent

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        """Return the whole file as the editor shows it, else as it is on the disk, or None when nothing is there."""
        stored = self._disk.read(target, limit=limit)
        if stored is None or isinstance(target, DiscoveredTarget):
            return stored
        data = self._ask_editor(target, stored).data
        if len(data) > limit:
            raise too_large_error(target.key, len(data), limit)
        return replace(stored, data=data)

    def read_watched(self, target: Target, *, limit: int, in_place: bool = False) -> StoredFile | None:
        """Read it as the editor shows it. It is not leased: the editor itself may save it while we wait for the editor."""
        del in_place
        return self.read(target, limit=limit)

    def read_chunks(self, target: Target) -> Iterator[bytes]:
        try:
            stored = self.read(target, limit=self._largest)
        except FileTooLarge:
            yield from self._disk.read_chunks(target)
            return
        if stored is None:
            raise missing_error(target.key)
        for start in range(0, len(stored.data), _PIECE_BYTES):
            yield stored.data[start : start + _PIECE_BYTES]

    def open_steady(self, target: Target) -> AbstractContextManager[SteadyFile | None]:
        """Yield nothing: the text of an editor may change at any time."""
        del target
        return nullcontext(None)

    def target_below(self, directory: Target, names: Sequence[str]) -> Target:
        found = self._disk.target_below(directory, names)
        return DiscoveredTarget(root=found.root, parts=found.parts, key=found.key)

    def replaces_in_place(self, target: Target) -> bool:
        """Tell whether we ourselves would write into the same inode: not where the editor writes."""
        if not self._disk.replaces_in_place(target):
            return False
        seen = self._current_state(target)
        return seen is None or seen.shown is None or not seen.shown.faithful

    def read_caution(self) -> str:
        """Say whether a root was replaced, as the disk sees it."""
        return self._disk.read_caution()

    def write_caution(self, target: Target) -> str:
        """Say that the last write went through the editor, and what that means for it."""
        return self._cautions.get(_file_key(target), "")

    def apply(
        self, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes, leased: bool = True
    ) -> None:
        """Stage the steps of the disk, call `fence`, write through the editor, then make the rest visible; or none."""
        writes, others, cautions = self._split_steps(steps, keep)

        def publish_writes() -> None:
            fence()
            for number, write in enumerate(writes):
                if number:
                    fence()  # the editor may have taken its time
                write.publish()

        try:
            self._disk.apply(others, tag=tag, fence=publish_writes, keep=keep, leased=leased and not writes)
        except BaseException as error:
            _undo_writes(writes, error)
            raise
        for place in (place for step in steps for place in _file_keys(step)):
            self._cautions.pop(place, None)
        self._cautions |= cautions | {_file_key(write.step.target): write.caution for write in writes}

    def _split_steps(
        self, steps: Sequence[Step], keep: KeepBytes
    ) -> tuple[list[EditorWrite], list[Step], dict[_FileKey, str]]:
        """Return the steps that go through the editor, the other ones, and cautions about those."""
        touched = Counter(place for step in steps for place in _file_keys(step))
        writes, others, cautions = list[EditorWrite](), list[Step](), dict[_FileKey, str]()
        for step in steps:
            alone = all(touched[place] == 1 for place in _file_keys(step))
            write = self._plan_write(step, keep) if isinstance(step, Replace) and alone else None
            if write is not None:
                writes.append(write)
                continue
            others.append(step)
            if caution := self._check_disk_step(step):
                cautions[_file_key(step.target)] = caution
        return writes, others, cautions

    def _plan_write(self, step: Replace, keep: KeepBytes) -> EditorWrite | None:
        """Return how to write through the editor; None when the disk must be written."""
        path, seen = _editor_path(step.target), self._current_state(step.target)
        if path is None or seen is None or seen.shown is None or len(step.data) > self._largest:
            return None
        if step.mode not in (None, seen.stored.meta.mode) or seen.shown.text_for(step.data) is None:
            return None
        look = partial(self._current_state, step.target)
        return EditorWrite(files=self._files, step=step, path=path, look=look, keep=keep)

    def _check_disk_step(self, step: Step) -> str:
        """Refuse to remove or replace a file on the disk while the editor has unsaved text; return a caution if unknown."""
        if isinstance(step, Create):
            return ""
        target = step.source if isinstance(step, Rename) else step.target
        try:
            stored = self._disk.read(target, limit=self._largest)
        except FileTooLarge:
            return _TOO_LARGE_CAUTION.format(key=step.target.key)
        if stored is not None and self._has_unsaved(target, stored):
            raise StaleFile(
                f"`{target}` has unsaved changes in the editor, and this change can only be made on the disk.",
                path=target.key,
                reason="unsaved_changes",
                action="Save or discard the changes in the editor first, then read the file and try again.",
            )
        return ""

    def _has_unsaved(self, target: Target, stored: StoredFile) -> bool:
        path = _editor_path(target)
        if path is None:
            return False
        if is_plain(stored.data):
            seen = self._ask_editor(target, stored)
            return seen.shown is not None and not seen.shown.saved
        text = None if is_binary(stored.data) else self._read_text(path, target)
        return text is not None and not may_be_saved(stored.data, text)

    def _current_state(self, target: Target) -> BufferState | None:
        try:
            stored = self._disk.read(target, limit=self._largest)
        except FileTooLarge:
            return None
        return None if stored is None else self._ask_editor(target, stored)

    def _ask_editor(self, target: Target, stored: StoredFile) -> BufferState:
        path = _editor_path(target)
        if path is None or len(stored.data) > self._largest or not is_plain(stored.data):
            return BufferState(stored=stored)
        text = self._read_text(path, target)
        if text is None:
            return BufferState(stored=stored)
        found, place, name = interpret_buffer(stored.data, text), _file_key(target), sha256_hex(text.encode())
        if found.saved:
            self._clean[place] = name
        elif self._clean.get(place) == name:
            found = replace(found, data=stored.data, saved=True, faithful=False)
        else:
            self._clean.pop(place, None)
        return BufferState(stored=stored, shown=found)

    def _read_text(self, path: str, target: Target) -> str | None:
        text = self._files.read_text(path)
        if text is not None and not _is_text(text):
            raise Unavailable(
                f"The editor shows `{target}` with characters that text cannot hold.",
                path=target.key,
                reason="editor_bad_text",
                action="Save the file in the editor and close it, then try again.",
            )
        return text


def _undo_writes(writes: Sequence[EditorWrite], error: BaseException) -> None:
    broken = list[str]()
    for write in reversed(writes):
        try:
            write.undo()
        except SureholdError:
            broken.append(write.step.target.key)
    if broken:
        raise RecoveryRequired(
            f"The change failed, and `{broken[0]}` could not be brought back in the editor.",
            path=broken[0],
            paths=broken,
        ) from error


def _editor_path(target: Target) -> str | None:
    """Return the absolute path; None for a name that cannot be sent to an editor."""
    path = "/".join((target.root.rstrip("/"), *target.parts))
    return path if _is_text(path) else None


def _is_text(text: str) -> bool:
    """Tell whether a string has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _file_key(target: Target) -> _FileKey:
    return target.root, target.parts


def _file_keys(step: Step) -> list[_FileKey]:
    return [_file_key(target) for target in step_targets(step)]
