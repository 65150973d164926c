"""Applies all steps of a call, or none of them.

Rules:
1. Everything is staged, then the fence is checked, then the steps are published one after another.
2. When anything fails, from staging to the last sync of a directory, every step is undone in reverse order.
3. Directories are synced before displaced bytes are dropped: a failed sync can still be undone. The removal itself
   becomes durable with the next commit of the file system, which is the journal's own at the latest.
4. After a kill at any moment a path holds its old or its new bytes, and the only leftovers beside it are temporary
   names with the call's tag (and empty directories made for it). Files written in place are the exception.
"""

import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import assert_never

from surehold.disk.base import (
    Create,
    KeepBytes,
    PutEntry,
    Remove,
    Rename,
    Replace,
    SetFacts,
    Step,
    TakeEntry,
    Target,
    WholeStep,
    step_targets,
)
from surehold.disk.errno_errors import as_surehold_error, translate_os_errors
from surehold.disk.steps.create_remove import RemoveAction, StepAction, create_action
from surehold.disk.steps.entries import PutEntryAction, SetFactsAction, TakeEntryAction
from surehold.disk.steps.rename import RenameAction
from surehold.disk.steps.replace import ReplaceAction, must_overwrite
from surehold.disk.steps.staging import (
    DirectoryPool,
    DirectorySlot,
    Durability,
    StepContext,
    check_tag,
    index_of_temporary,
)
from surehold.disk.steps.watched import WatchedFiles
from surehold.disk.tree import DIRECTORY_FLAGS, Tree
from surehold.errors import NotFound, OutsideWorkspace, RecoveryRequired, SureholdError

_KeyedActions = Sequence[tuple[str, StepAction]]
"""The steps of a call, each with the path that its errors name."""


def apply_steps(
    tree: Tree,
    steps: Sequence[Step],
    *,
    tag: str,
    fence: Callable[[], None],
    keep: KeepBytes,
    durability: Durability,
    watches: WatchedFiles,
    leased: bool,
) -> None:
    with _open_call(tree, tag=tag, keep=keep, durability=durability, leased=leased) as call:
        actions = [(step.target.key, _action_for(call, index, step, watches)) for index, step in enumerate(steps)]
        try:
            _stage_and_publish(actions, _dependent_indexes(steps), fence)
            if durability == "full":
                try:
                    call.directories.sync_changed()
                except OSError as error:
                    raise as_surehold_error(error, steps[0].target.key if steps else ".") from error
            if durability != "none" and any(isinstance(step, WholeStep) for step in steps):
                tree.sync_file_systems()  # such steps may be very many: they are synced together
            _confirm_all(actions)
        except BaseException as error:
            _undo_all(actions, call, error)
            raise
        _clean_up_all(actions)


@contextmanager
def _open_call(
    tree: Tree, *, tag: str, keep: KeepBytes, durability: Durability, leased: bool = True
) -> Generator[StepContext]:
    kernel = tree.kernel if leased else replace(tree.kernel, leases=False)
    with closing(DirectoryPool(tree=tree)) as directories:
        yield StepContext(kernel=kernel, directories=directories, tag=check_tag(tag), keep=keep, durability=durability)


def _stage_and_publish(actions: _KeyedActions, dependent: frozenset[int], fence: Callable[[], None]) -> None:
    key = ""
    try:
        for index, (name, action) in enumerate(actions):
            key = name
            if index not in dependent:
                action.stage()
        fence()
        for index, (name, action) in enumerate(actions):
            key = name
            if index in dependent:
                action.stage()
            action.publish()
    except OSError as error:
        raise as_surehold_error(error, key) from error


def _confirm_all(actions: _KeyedActions) -> None:
    key = ""
    try:
        for name, action in actions:
            key = name
            action.confirm()
    except OSError as error:
        raise as_surehold_error(error, key) from error


def _undo_all(actions: _KeyedActions, call: StepContext, error: BaseException) -> None:
    broken: list[str] = []
    for key, action in reversed(actions):
        if not _try_twice(action.undo):
            broken.append(key)
        # A new directory may be where an earlier step removed a file, which is restored next.
        call.directories.remove_made()
    if call.durability == "full":
        with suppress(OSError):
            call.directories.sync_changed()
    if broken:
        raise RecoveryRequired(
            f"The change failed, and `{broken[0]}` could not be brought back.", path=broken[0], paths=broken
        ) from error


def _clean_up_all(actions: _KeyedActions) -> None:
    """Drop what was displaced. The change has happened by now: what cannot be removed is litter, not a failure."""
    interrupt: BaseException | None = None
    for _, action in actions:
        try:
            _try_twice(action.clean_up)
        except BaseException as error:  # noqa: BLE001  # raised again below, when nothing is left lying about
            interrupt = error
            _try_twice(action.clean_up)
    if interrupt is not None:
        raise interrupt


def _try_twice(action: Callable[[], None]) -> bool:
    """Try what must not stay half done once more when it fails; tell whether it was done."""
    for _ in range(2):
        with suppress(OSError, SureholdError):
            action()
            return True
    return False


def _action_for(call: StepContext, index: int, step: Step, watches: WatchedFiles) -> StepAction:
    watch = watches.take(step.source if isinstance(step, Rename) else step.target)
    match step:
        case Create():
            return create_action(call, index, step)
        case Replace():
            return ReplaceAction(call=call, index=index, step=step, watch=watch)
        case Remove():
            return RemoveAction(call=call, index=index, target=step.target, expected=step.expected, watch=watch)
        case Rename():
            return RenameAction(call=call, index=index, step=step, watch=watch)
        case PutEntry():
            return PutEntryAction(call=call, index=index, step=step)
        case TakeEntry():
            return TakeEntryAction(call=call, index=index, step=step)
        case SetFacts():
            return SetFactsAction(call=call, step=step)
        case _:
            assert_never(step)


def _dependent_indexes(steps: Sequence[Step]) -> frozenset[int]:
    """Return the steps that can only be staged after an earlier one is visible: they touch the same path."""
    touched: set[tuple[str, tuple[str, ...]]] = set()
    dependent: set[int] = set()
    for index, step in enumerate(steps):
        targets = step_targets(step)
        above = {(target.root, target.parts[:depth]) for target in targets for depth in range(1, len(target.parts) + 1)}
        if above & touched:
            dependent.add(index)
        touched |= {(target.root, target.parts) for target in targets}
    return frozenset(dependent)


def replaces_in_place(tree: Tree, target: Target) -> bool:
    if not target.parts:
        return False
    try:
        root, above = tree.root_of(target), target.parts[:-1]
        fd = tree.open_parts(root, above, DIRECTORY_FLAGS)
        try:
            return must_overwrite(fd, target.parts[-1])
        finally:
            os.close(fd)
    except NotFound:
        return False
    except OSError as error:
        failure = as_surehold_error(error, target.key)
        if isinstance(failure, NotFound):
            return False
        raise failure from error


def remove_leftovers(tree: Tree, targets: Sequence[Target], *, tag: str, keep: KeepBytes) -> None:
    # A root is a target too, where a command changed its mode; nothing is ever staged beside it.
    by_directory = {(target.root, target.parts[:-1]): target for target in targets if target.parts}
    escapes = list[OutsideWorkspace]()
    with _open_call(tree, tag=tag, keep=keep, durability="none") as call:
        for target in by_directory.values():
            try:
                _remove_beside(call, target, targets)
            except OutsideWorkspace as error:  # the others are cleaned first
                escapes.append(error)
    if escapes:
        raise escapes[0]


def _remove_beside(call: StepContext, target: Target, targets: Sequence[Target]) -> None:
    with translate_os_errors(target.key):
        try:
            place = call.directories.find_slot(target)
            names = os.listdir(place.fd)  # noqa: PTH208  # pathlib lists no descriptor
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.ENOTDIR}:
                raise
            return
        for name in names:
            index = index_of_temporary(name, call.tag)
            if index is not None:
                beside = targets[index] if index < len(targets) else target
                key = beside.key if beside.parts[:-1] == target.parts[:-1] else target.key
                _remove_leftover(call, replace(place, key=key), name)


def _remove_leftover(call: StepContext, place: DirectorySlot, name: str) -> None:
    status = place.read_status(name)
    # Sockets and directories of others can only have got here by a swap; they hold no bytes to keep. Where a link led to
    # is recorded.
    if status is not None and stat.S_ISREG(status.st_mode):
        call.keep_file(place, name)
        call.drop_file(place, name, None)
    elif status is not None and (stat.S_ISLNK(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
        os.unlink(name, dir_fd=place.fd)
