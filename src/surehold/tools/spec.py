"""Params + Result + docstring + Hints + Wire = a tool.

```python
@tool("count_lines", hints=Hints(kind="read", read_only=True), wire=WIRE)
def count_lines(context: CallContext, params: CountParams) -> CountResult:
    \"\"\"Count the lines of a file.\"\"\"
```

From this come the MCP tool, the command, the typed method of a session, and the events of an editor.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, get_type_hints

from pydantic import BaseModel

from surehold.errors import InvalidArgument, RecoveryRequired, SureholdError
from surehold.tools.call import Answer, AnswerBudget, CallContext, Json
from surehold.tools.details import detail_rows
from surehold.tools.listing import Hints
from surehold.tools.params import MODEL_CONFIG, P, parse_arguments, split_idempotency_key
from surehold.tools.schema import params_schema, result_schema


class ResultPart(BaseModel):
    model_config = MODEL_CONFIG

    MAY_BE_UNKNOWN: ClassVar[frozenset[str]] = frozenset()
    """Fields whose None says something."""

    @classmethod
    def from_known(cls, **facts: Any) -> Self:
        """Make it of what is known: a field that is None counts as not set."""
        known = {name: fact for name, fact in facts.items() if fact is not None or name in cls.MAY_BE_UNKNOWN}
        return cls(**known)


class Result(ResultPart):
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
        return True

    def failure_details(self) -> Json:
        """Return what went wrong, when not all of it was done."""
        return {}

    def changes_made(self) -> tuple[str, ...]:
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
        return error.kind

    def details_of(self, error: SureholdError) -> Json:
        return error.details

    def detail_rows(self, details: Json) -> list[str]:
        return detail_rows(details, leave_out=self.in_message)

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: nothing is always there."""
        return {"type": "object", "properties": {**self.declared_fields(result), "error": {"type": self.error_type}}}

    def declared_fields(self, result: type[Result]) -> Json:
        return result_schema(result)["properties"]


_MAX_PATH_CHARS = 4_096


R = TypeVar("R", bound=Result)


@dataclass(frozen=True, kw_only=True)
class Tool(Generic[P, R]):
    """One tool, defined once."""

    name: str
    description: str
    params: type[P]
    result: type[R]
    hints: Hints
    wire: Wire = field(repr=False)
    run: Callable[[CallContext, P], R] = field(repr=False)
    method: str = ""
    """What a session calls it."""
    guide: str = field(default="", repr=False)
    """What a model should know beyond the description."""
    brief: str = field(default="", repr=False)
    """The same in a third of the words; where there is a guide, by default the first paragraph of the description."""

    def __call__(self, context: CallContext, params: P) -> R:
        """Call it from Python, with types."""
        return self.run(context, params)

    def load(self) -> Self:
        return self

    @cached_property
    def input_schema(self) -> Json:
        return params_schema(self.params)

    @cached_property
    def output_schema(self) -> Json | None:
        """What it answers, success or failure; None for tools that only look, whose answer is text."""
        return None if self.hints.read_only else self.wire.output_schema(self.result)

    def is_one_change(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether a call happens completely or not at all."""
        return arguments.get(self.hints.atomic_argument, True) is True

    def call(self, context: CallContext, arguments: Mapping[str, Any]) -> Answer:
        """Call it with plain data; a refusal is an answer too, and the ledger records it."""
        arguments = self.params.with_known_names(arguments)
        try:
            context.raise_if_cancelled()
            context, arguments = self._take_key(context, arguments)
            old_names = context.deprecated_names
            params, warnings = parse_arguments(self.name, self.params, arguments, deprecated_names=old_names)
            if self.hints.read_only and (caution := context.session.workspace.read_caution()):
                warnings = (*warnings, f"{caution} This is from the directory that was opened.")
            if warnings:
                context = replace(context, budget=context.budget.beside(_warning_text(warnings)))
            result = self.run(context, params)
        except SureholdError as error:
            return self.record_refusal(context, arguments, error)
        try:
            return self._lay_out(context, result, warnings)
        except Exception as bug:
            if not result.changes_made():
                raise
            return self.changed_answer(result.changes_made(), bug)

    def _take_key(self, context: CallContext, arguments: Mapping[str, Any]) -> tuple[CallContext, Mapping[str, Any]]:
        """Let the session know the idempotency key of a call, which is not an argument of its own."""
        if self.hints.read_only:
            return context, arguments
        given, key = split_idempotency_key(self.params, arguments)
        if not key:
            return context, given
        if not self.is_one_change(given):
            message = "An idempotency key settles one change, and this call makes several."
            action = f"Leave `{self.hints.atomic_argument}` out, or read the files and send what is missing."
            raise InvalidArgument(message, reason="several_changes", action=action)
        return replace(context, session=context.session.with_idempotency_key(key)), given

    def record_refusal(self, context: CallContext, arguments: Mapping[str, Any], error: SureholdError) -> Answer:
        """Answer a call that was refused; the ledger records it unless it did already, or the call was a dry run."""
        hints = self.hints
        if hints.operation and not error.recorded and not (arguments.get("dryRun") or arguments.get("dry_run")):
            subject = self.params.subject_of(arguments)
            path = (subject.trashed or subject.path or error.path or "")[:_MAX_PATH_CHARS]
            context.session.record_refusal(path, tool=self.name, operation=hints.operation, error=error)
        return self.refusal_answer(error)

    def refusal_answer(self, error: SureholdError) -> Answer:
        """Spell an error as the answer to a call; after a bug it is unknown whether something was written."""
        changes = not self.hints.read_only
        text = self.wire.failure_text(error, wrote_nothing=changes and error.reason != "bug")
        data = self.wire.failure(error)
        return Answer(ok=False, text=text, data=data, structured=data if changes else None, error=error)

    def _lay_out(self, context: CallContext, result: R, warnings: tuple[str, ...]) -> Answer:
        text = result.text(context.budget)
        if warnings:
            text = "\n".join(filter(None, [text, _warning_text(warnings)]))
        data = self.wire.success(result, warnings)
        fitted = result.cut_to_budget(context.budget)
        shown = None if self.hints.read_only else data if fitted is result else self.wire.success(fitted, warnings)
        return Answer(
            ok=result.ok,
            text=text,
            data=data,
            structured=shown,
            warnings=warnings,
            change_ids=result.changes_made(),
            content=result.content_blocks(),
        )

    def changed_answer(self, change_ids: tuple[str, ...], bug: Exception) -> Answer:
        """Say that the change was written, when everything else about it cannot be said."""
        warning = (
            f"The change was written, but Surehold failed to lay out the answer ({type(bug).__name__}); this is a bug. "
            "Do not send the call again; read the file."
        )
        text = "\n".join([warning, *(f"change_id: {change_id}" for change_id in change_ids)])
        data = self.wire.change_made(change_ids, warning)
        return Answer(
            ok=True, text=text, data=data, structured=data, warnings=(warning,), change_ids=change_ids, bug=bug
        )


AnyTool = Tool[Any, Any]


def _warning_text(warnings: Sequence[str]) -> str:
    return "\n".join(f"Warning: {warning}" for warning in warnings)


def tool(
    name: str, *, hints: Hints, wire: Wire, method: str = "", guide: str = "", brief: str = ""
) -> Callable[[Callable[[CallContext, P], R]], Tool[P, R]]:
    """Make a tool of a function whose types and docstring say the rest; `method` where a session calls it otherwise."""

    def make_tool(run: Callable[[CallContext, P], R]) -> Tool[P, R]:
        types, description = get_type_hints(run), inspect.cleandoc(run.__doc__ or "")
        first, _, _ = description.partition("\n\n")
        return Tool(
            name=name,
            description=description,
            params=types["params"],
            result=types["return"],
            hints=hints,
            wire=wire,
            run=run,
            method=method or name,
            guide=guide,
            brief=brief or (f"`{name}`: {first}" if guide else ""),
        )

    return make_tool
