"""Builds the errors that every store knows."""

from surehold.errors import LOG, VERIFY, NotFound, SpelledText, StateCorrupt, StateUnavailable, spell


def blob_missing_error(sha256: str) -> NotFound:
    return NotFound(
        f"The bytes {sha256} are not stored any more.",
        reason="blob_missing",
        action=spell("The history was pruned (see {}); take a version from a backup or from version control.", LOG),
        sha256=sha256,
    )


def blob_damaged_error(sha256: str, cause: str) -> StateCorrupt:
    return StateCorrupt(
        f"The stored bytes {sha256} are damaged.",
        action=spell("Run {} to see what else is affected, and take this version from a backup.", VERIFY),
        sha256=sha256,
        cause=cause,
    )


def entry_damaged_error(seq: int) -> StateCorrupt:
    return StateCorrupt(
        f"Entry {seq} of the history is damaged.", action=spell("Run {} to see what else is affected.", VERIFY), seq=seq
    )


def import_unfinished_error(state: str) -> StateUnavailable:
    """Say that a place has a part of a history, because moving it there was interrupted."""
    return StateUnavailable(
        "A history was being moved here, and only a part of it arrived.",
        reason="import_unfinished",
        action=f"Nothing was written. Run the same `surehold state migrate` again: it goes on. The source has all of it. "
        f"To give it up, name another place than {state}.",
        state=state,
    )


def intent_gone_error(intent_id: str) -> StateUnavailable:
    """Say that another process settled the intent, because its lease was over."""
    return StateUnavailable(
        "The record of this change was settled by another process.",
        reason="intent_gone",
        action=spell("Re-read the files and look at {} before trying again.", LOG),
        change_id=intent_id,
    )


def trash_entry_missing_error(reference: str) -> NotFound:
    trash = SpelledText("`surehold trash list`", "`workspace.history.trash()`")
    return NotFound(
        f"Nothing in the trash is called `{reference[:80]}`.",
        reason="trash_entry_missing",
        action=spell("Look at {}.", trash),
    )
