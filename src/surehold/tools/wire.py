"""Results, and how a tool family spells results and refusals, for programs and for models."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, cast

from pydantic import BaseModel

from surehold.errors import RecoveryRequired, SureholdError
from surehold.tools.context import AnswerBudget
from surehold.tools.params import MODEL_CONFIG
from surehold.tools.schema import Json, result_schema

_DETAIL_CHARS = 2_000
"""How many characters of one detail a model is shown; programs get all of it."""
_MEANINGFUL_WHEN_FALSE = "editsStillApply"


class ResultPart(BaseModel):
    """A part of a result."""

    model_config = MODEL_CONFIG


class Result(ResultPart):
    """What a tool returns when it succeeds."""

    @abstractmethod
    def text(self, budget: AnswerBudget) -> str:
        """Say it to a model, within the budget; what does not fit is named, with the call that shows it."""

    def content_blocks(self) -> tuple[Json, ...]:
        """Return what it shows beside its text: images and the like, as MCP spells them."""
        return ()

    def cut_to_budget(self, budget: AnswerBudget) -> Self:  # noqa: ARG002 - most results are small
        """Return it in a size that a model is given in one piece."""
        return self

    @property
    def ok(self) -> bool:
        """Whether all of it was done."""
        return True

    def failure_details(self) -> Json:
        """Return what went wrong, when not all of it was done."""
        return {}

    def changes_made(self) -> tuple[str, ...]:
        """Return the ids of the changes that were written."""
        change_id = getattr(self, "change_id", "")
        return (change_id,) if change_id else ()


class Wire(ABC):
    """How a family spells success and failure. A family states what differs: its tables, and its forms for programs."""

    in_message: ClassVar[frozenset[str]] = frozenset()
    """Details that the message states already, or that the caller sent."""
    leaves_out: ClassVar[Literal["none", "unset"]] = "none"
    """Which fields of a result are left out."""
    error_type: ClassVar[str] = "object"

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        """Spell a result; warnings about the call itself join those of the tool."""
        nones, unset = self.leaves_out == "none", self.leaves_out == "unset"
        data = result.model_dump(mode="json", by_alias=True, exclude_none=nones, exclude_unset=unset)
        return self.with_warnings(data, warnings) if warnings else data

    def with_warnings(self, data: Json, warnings: Sequence[str]) -> Json:
        return {**data, "warnings": [*data.get("warnings", ()), *warnings]}

    def change_made(self, change_ids: Sequence[str], warning: str) -> Json:
        """Spell a change whose result cannot be laid out."""
        return {"change_id": change_ids[-1], "warnings": [warning]}

    @abstractmethod
    def failure(self, error: SureholdError) -> Json:
        """Spell an error for a program."""

    def failure_text(self, error: SureholdError, *, wrote_nothing: bool) -> str:
        """Say what is wrong, what to do next, and what is needed to do it; `wrote_nothing` when a change was refused."""
        notice = "Nothing was written. " if wrote_nothing and not isinstance(error, RecoveryRequired) else ""
        rows = [*self.failure_heading(error, notice), *self.detail_rows(self.details_of(error))]
        return "\n".join(row for row in rows if row)

    def failure_heading(self, error: SureholdError, notice: str) -> tuple[str, str]:
        """Return the first two lines of a refusal."""
        return f"{notice}{self.kind_of(error)}: {error.message}", error.action

    def kind_of(self, error: SureholdError) -> str:
        """Return the family's word for an error."""
        return error.kind

    def details_of(self, error: SureholdError) -> Json:
        """Return the details of an error under the family's names."""
        return error.details

    def detail_rows(self, details: Json) -> list[str]:
        """Lay details out for reading: one line each, longer texts as blocks."""
        return [
            _detail_text(key, value)
            for key, value in details.items()
            if key not in self.in_message
            and value not in (None, "", [], {})
            and (value is not False or key == _MEANINGFUL_WHEN_FALSE)
        ]

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: nothing is always there."""
        return {"type": "object", "properties": {**self.declared_fields(result), "error": {"type": self.error_type}}}

    def declared_fields(self, result: type[Result]) -> Json:
        """Return the fields of a result that the schema names."""
        return result_schema(result)["properties"]


def _detail_text(key: str, value: Any) -> str:
    if isinstance(value, str):
        shown = value if len(value) <= _DETAIL_CHARS else value[:_DETAIL_CHARS] + "…"
        return f"{key}:\n{shown.rstrip()}" if "\n" in shown else f"{key}: {shown}"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if any(isinstance(item, str) and "|" in item for item in items):  # rows of a file
            return "\n".join([f"{key}:", *map(str, items)])
        if all(isinstance(item, (int, str)) for item in items):
            return f"{key}: " + ", ".join(map(str, items))
        return "\n".join([f"{key}:", *(f"- {_inline_text(item)}" for item in items)])
    return f"{key}: {_inline_text(value)}"


def _inline_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_inline_text(inner)}" for key, inner in cast("Json", value).items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
