"""How much of an answer each host lets through to its model."""

from collections.abc import Mapping
from dataclasses import replace

from surehold.tools.context import Budget

_BY_CLIENT: Mapping[str, Budget] = {
    # Codex removes the middle of anything above 12,000 characters; a page leaves room for what stands around it.
    "codex": Budget(characters=11_000, tokens=3_000),
}
"""Budgets of hosts that cut earlier than ours, by a word in the name they give themselves."""


def budget_for(client: str, *, max_chars: int = 0, max_tokens: int = 0) -> Budget:
    """Return what fits this host; a limit that was set by hand wins."""
    name = client.casefold()
    budget = next((budget for word, budget in _BY_CLIENT.items() if word in name), Budget())
    if max_chars:
        budget = replace(budget, characters=max_chars)
    return replace(budget, tokens=max_tokens) if max_tokens else budget
