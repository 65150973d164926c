"""All steps of a call, or none of them.

Rules:
1. Everything is staged, then the fence is asked, then one step after the other is published.
2. When anything fails, from staging to the last sync of a directory, every step is undone in reverse order.
3. Directories are synced before displaced bytes are dropped: a sync that fails can still be undone. The drop itself
   rides on the next commit of the file system, which is the journal's own, at the latest.
4. After a kill at any moment a path holds its old or its new bytes, and beside it lies nothing but temporary names with
   the call's tag (and empty directories that were made for it). Files written in place are the exception.
"""

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import assert_never

from surehold.disk.atomic import Action, creation, removal
from surehold.disk.base import Create, Remove, Rename, Replace, Step, Target
from surehold.disk.failures import translate, translated
from surehold.disk.places import Directories, Place
from surehold.disk.renaming import Renaming
from surehold.disk.replacement import Replacement, must_overwrite
from surehold.disk.staging import Call, Durability, check_tag, is_temporary
from surehold.disk.tree import Tree
from surehold.errors import NotFound, RecoveryRequired, SureholdError


def apply(
    tree: Tree,
    steps: Sequence[Step],
    *,
    tag: str,
    fence: Callable[[], None],
    keep: Callable[[bytes], None],
    durability: Durability,
) -> None:
    """Make all steps visible, or none and raise."""
    directories = Directories(tree=tree)
    call = Call(kernel=tree.kernel, directories=directories, tag=check_tag(tag), keep=keep, durability=durability)
    actions = [_action(call, index, step) for index, step in enumerate(steps)]
    try:
        try:
            _run(actions, _dependent(steps), fence)
            if durability == "full":
                with translated(actions[0].key if actions else "."):
                    directories.sync()
        except BaseException as error:
            _undo(actions, call, error)
            raise
        _settle(actions)
    finally:
        directories.close()


def _run(actions: Sequence[Action], dependent: frozenset[int], fence: Callable[[], None]) -> None:
    for index, action in enumerate(actions):
        if index not in dependent:
            with translated(action.key):
                action.stage()
    fence()
    for index, action in enumerate(actions):
        with translated(action.key):
            if index in dependent:
                action.stage()
            action.publish()


def _undo(actions: Sequence[Action], call: Call, error: BaseException) -> None:
    broken: list[str] = []
    for action in reversed(actions):
        if not _twice(action.undo):
            broken.append(action.key)
        # A directory may stand where an earlier step took a file away, which comes back next.
        call.directories.remove_made()
    if call.durability == "full":
        with suppress(OSError):
            call.directories.sync()
    if broken:
        raise RecoveryRequired(
            f"The change failed, and `{broken[0]}` could not be brought back.", path=broken[0], paths=broken
        ) from error


def _settle(actions: Sequence[Action]) -> None:
    """Drop what was displaced. The change has happened by now: what resists is litter, not a failure."""
    interrupt: BaseException | None = None
    for action in actions:
        try:
            _twice(action.settle)
        except BaseException as error:  # noqa: BLE001  # raised again below, when nothing is left lying about
            interrupt = error
            _twice(action.settle)
    if interrupt is not None:
        raise interrupt


def _twice(action: Callable[[], None]) -> bool:
    """Try what must not stay half done once more when it fails; tell whether it was done."""
    for _ in range(2):
        with suppress(OSError, SureholdError):
            action()
            return True
    return False


def _action(call: Call, index: int, step: Step) -> Action:
    match step:
        case Create():
            return creation(call, index, step)
        case Replace():
            return Replacement(call=call, index=index, step=step)
        case Remove():
            return removal(call, index, step)
        case Rename():
            return Renaming(call=call, index=index, step=step)
        case _:
            assert_never(step)


def _dependent(steps: Sequence[Step]) -> frozenset[int]:
    """Return the steps that can only be staged after an earlier one is visible: they touch the same path."""
    touched: set[tuple[str, tuple[str, ...]]] = set()
    dependent: set[int] = set()
    for index, step in enumerate(steps):
        targets = [step.source, step.target] if isinstance(step, Rename) else [step.target]
        above = {(target.root, target.parts[:depth]) for target in targets for depth in range(1, len(target.parts) + 1)}
        if above & touched:
            dependent.add(index)
        touched |= {(target.root, target.parts) for target in targets}
    return frozenset(dependent)


def replaces_in_place(tree: Tree, target: Target) -> bool:
    """Tell whether a new version would have to be written into the same inode."""
    directories = Directories(tree=tree)
    try:
        with translated(target.key):
            return must_overwrite(directories.place(target))
    except NotFound:
        return False
    finally:
        directories.close()


def sweep(tree: Tree, targets: Sequence[Target], *, tag: str, keep: Callable[[bytes], None]) -> None:
    """Remove what a dead process staged beside the targets; its bytes are kept first."""
    directories = Directories(tree=tree)
    call = Call(kernel=tree.kernel, directories=directories, tag=check_tag(tag), keep=keep, durability="none")
    seen: set[tuple[str, tuple[str, ...]]] = set()
    try:
        for target in targets:
            if (target.root, target.parts[:-1]) not in seen:
                seen.add((target.root, target.parts[:-1]))
                _sweep_beside(call, target)
    finally:
        directories.close()


def _sweep_beside(call: Call, target: Target) -> None:
    try:
        place = call.directories.place(target)
        names = os.listdir(place.fd)  # noqa: PTH208  # pathlib lists no descriptor
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise translate(error, target.key) from error
    for name in names:
        if is_temporary(name, call.tag):
            with translated(target.key):
                _sweep_one(call, place, name)


def _sweep_one(call: Call, place: Place, name: str) -> None:
    status = place.status(name)
    # Links, sockets and directories of others can only have got here by a swap; they hold no bytes to keep.
    if status is not None and stat.S_ISREG(status.st_mode):
        call.keep_file(place, name)
        call.drop(place, name, None)
