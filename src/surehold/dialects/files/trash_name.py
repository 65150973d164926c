"""How a deleted file is named as a place: `trash:<id>`."""

_PREFIX = "trash:"


def trash_name(trash_id: str) -> str:
    """Return where a deleted file is, as a caller gets it."""
    return _PREFIX + trash_id


def trash_id_of(name: str) -> str:
    """Return the id in such a name; an id alone is understood too."""
    return name.removeprefix(_PREFIX)
