"""Ties a test to the sentences of the contract that it proves."""

from difflib import get_close_matches

import pytest

from spec.requirements import IDS


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test, a class, or with `pytestmark = …` a module as the proof of these requirements."""
    if not ids:
        raise ValueError("Name at least one requirement.")
    for id_ in ids:
        if id_ not in IDS:
            close = get_close_matches(id_, IDS, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise ValueError(f"No requirement is called `{id_}`.{hint}")
    return pytest.mark.requirement(*ids)
