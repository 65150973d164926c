"""How our values look in the tables."""

from surehold.stores import chain
from surehold.stores.base import Entry
from surehold.text.version import Version


def key(text: str) -> bytes:
    """Return a path or another's string as bytes; a file name need not be text, so a column of text cannot hold it."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # never a file's name, but a refused call may have said anything
        return text.encode("utf-8", "surrogatepass")


def text_of(stored: bytes) -> str:
    """Return the string behind `key`."""
    return stored.decode("utf-8", "surrogateescape")


def version_text(version: Version | None) -> str | None:
    """Return a version for a column; None stands for an absent file."""
    return None if version is None else chain.dumps(chain.version_to_json(version))


def version_of(stored: str | None) -> Version | None:
    """Return the version behind `version_text`."""
    return None if stored is None else chain.version_from_json(chain.loads(stored))


def entry_columns(entry: Entry) -> tuple[object, ...]:
    """Return the columns that repeat parts of an entry's body, in the table's order."""
    return (
        entry.seq,
        key(entry.change_id),
        key(entry.change.path),
        key(entry.change.to_path),
        key(entry.call.session),
        key(entry.call.agent),
        entry.call.operation,
        key(entry.call.undoes),
        int(entry.ok),
        entry.timestamp,
    )
