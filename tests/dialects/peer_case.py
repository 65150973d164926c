"""Situations that the test suites of other editing tools look at, restated: what we do there, and why where they do otherwise."""

from dataclasses import dataclass, field

from dialects.every_tool import EveryTool, Said

NO_FUZZ = "nothing is applied by similarity: the refusal shows the closest lines, and one retry suffices"
NO_OVERWRITE = "a file that nobody looked at is never overwritten"
ALL_OR_NONE = "a call happens completely or not at all"
AMBIGUOUS = "the first of several places is a guess: the refusal says where they are"


@dataclass(frozen=True, kw_only=True)
class PeerCase:
    name: str
    before: dict[str, str]
    after: dict[str, str] | None = None
    """None: the call is refused, and everything stays."""
    says: tuple[str, ...] = ()
    """Words of the answer."""
    because: str = field(default="")
    """Why we do something else than the others; empty where we do the same."""

    def check(self, every_tool: EveryTool, answer: Said) -> None:
        assert answer.ok is (self.after is not None), answer.text
        assert every_tool.files() == (self.before if self.after is None else self.after)
        for words in self.says:
            assert words in answer.text
