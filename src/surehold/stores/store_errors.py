"""Builds the errors that every store knows."""

from surehold.errors import NotFound, StateCorrupt, StateUnavailable


def blob_missing_error(sha256: str) -> NotFound:
    return NotFound(
        f"The bytes {sha256} are not stored any more.",
        reason="blob_missing",
        action="The history was pruned (see `surehold log`); take a version from a backup or from version control.",
        sha256=sha256,
    )


def blob_damaged_error(sha256: str, cause: str) -> StateCorrupt:
    return StateCorrupt(
        f"The stored bytes {sha256} are damaged.",
        action="Run `surehold verify` to see what else is affected, and take this version from a backup.",
        sha256=sha256,
        cause=cause,
    )


def entry_damaged_error(seq: int) -> StateCorrupt:
    return StateCorrupt(
        f"Entry {seq} of the history is damaged.", action="Run `surehold verify` to see what else is affected.", seq=seq
    )


def intent_gone_error(intent_id: str) -> StateUnavailable:
    """Say that another process settled the intent, because its lease was over."""
    return StateUnavailable(
        "The record of this change was settled by another process.",
        reason="intent_gone",
        action="Re-read the files and look at `surehold log` before trying again.",
        change_id=intent_id,
    )
