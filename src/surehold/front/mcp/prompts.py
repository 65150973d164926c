"""Prompts that a person can pick in the host."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from surehold.tools.spec import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A named text, with arguments when it has any."""

    name: str
    title: str
    description: str
    render: Callable[[Mapping[str, str]], Sequence[Json]]
    """Returns the messages, as the protocol spells them."""
    arguments: tuple[Json, ...] = ()

    def entry(self) -> Json:
        """Return it as `prompts/list` shows it."""
        entry: Json = {"name": self.name, "title": self.title, "description": self.description}
        return {**entry, "arguments": list(self.arguments)} if self.arguments else entry


def said(text: str) -> Sequence[Json]:
    """Return a text as the one message of a prompt."""
    return [{"role": "user", "content": {"type": "text", "text": text}}]
