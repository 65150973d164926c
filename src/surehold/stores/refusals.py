"""What every store says when it does not have what it is asked for."""

from surehold.errors import NotFound, StateCorrupt, StateUnavailable


def missing(sha256: str) -> NotFound:
    """Say that the bytes are not there any more."""
    return NotFound(
        f"The bytes {sha256} are not stored any more.",
        reason="blob_missing",
        action="The history was pruned (see `surehold log`); take a version from a backup or from version control.",
        sha256=sha256,
    )


def damaged(sha256: str, cause: str) -> StateCorrupt:
    """Say that the bytes are not those that their name promises."""
    return StateCorrupt(
        f"The stored bytes {sha256} are damaged.",
        action="Run `surehold verify` to see what else is affected, and take this version from a backup.",
        sha256=sha256,
        cause=cause,
    )


def gone(intent_id: str) -> StateUnavailable:
    """Say that somebody else settled the intent, because its lease was over."""
    return StateUnavailable(
        "The record of this change was settled by another process.",
        reason="intent_gone",
        action="Re-read the files and look at `surehold log` before trying again.",
        change_id=intent_id,
    )
