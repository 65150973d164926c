"""Params + Result + docstring + Hints + Wire = a tool.

```python
@tool("count_lines", hints=Hints(kind="read", read_only=True), wire=WIRE)
def count_lines(context: Context, params: CountParams) -> CountResult:
    \"\"\"Count the lines of a file.\"\"\"
```

From this come the MCP tool, the command, the typed Python function, the events of an editor and the reference page.
Unknown arguments at the top are ignored with a warning, since some hosts inject their own; inside a nested object they
are an error that lists the allowed names. A class may know other names for its arguments (`ALIASES`); they are taken
silently and stand in no schema.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from surehold.errors import InvalidArgument, SureholdError
from surehold.stores.base import Operation
from surehold.tools.context import AnswerBudget, CallContext
from surehold.tools.schema import params_schema

Kind = Literal["read", "edit", "delete", "move", "search", "other"]
Json = dict[str, Any]


_MODEL_CONFIG = ConfigDict(frozen=True, populate_by_name=True, defer_build=True)
"""Built when first used: a server starts in the time that it takes to build what `tools/list` needs."""


class _Arguments(BaseModel):
    """What callers send; an attribute's docstring is its description."""

    model_config = _MODEL_CONFIG

    ALIASES: ClassVar[Mapping[str, str]] = {}
    """Other names that callers use, and the arguments they mean."""

    DEPRECATED: ClassVar[Mapping[str, str]] = {}
    """Names that still work, with a warning."""
    DEMANDED: ClassVar[tuple[str, ...]] = ()
    """Arguments that the schema demands and the tool checks itself, since a setting may lift the demand."""

    @model_validator(mode="before")
    @classmethod
    def _rename_aliases(cls, values: Any) -> Any:
        if not cls.ALIASES or not isinstance(values, Mapping):
            return values
        given = dict(cast("Mapping[str, Any]", values))
        for alias, name in cls.ALIASES.items():
            if alias in given and name not in given:
                given[name] = given.pop(alias)
        return given

    @classmethod
    def known_names(cls) -> frozenset[str]:
        """Return every spelling of every argument."""
        named = {name for key, info in cls.model_fields.items() for name in (key, info.alias) if name}
        return frozenset(named | set(cls.ALIASES))


class Params(_Arguments):
    """The arguments of a tool."""


class NestedParams(_Arguments):
    """An object nested in the arguments; foreign keys are refused."""

    model_config = ConfigDict(extra="forbid")


class Result(BaseModel):
    """What a tool returns when it succeeds."""

    model_config = _MODEL_CONFIG

    def text(self, budget: AnswerBudget) -> str:
        """Say it to a model, within the budget; what does not fit is named, with the call that shows it."""
        raise NotImplementedError

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a host may want to know before it calls."""

    kind: Kind
    title: str = ""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    operation: Operation | None = None
    """What the ledger calls it, when it changes files."""


class Wire(Protocol):
    """How a dialect spells success and failure, for programs and for models."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        """Spell a result."""
        ...

    def failure(self, error: SureholdError) -> Json:
        """Spell an error."""
        ...

    def failure_text(self, error: SureholdError, *, wrote_nothing: bool) -> str:
        """Say an error to a model; `wrote_nothing` when a change was refused."""
        ...

    def output_schema(self, result: type[Result]) -> Json:
        """Return the schema of both."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call came to: plain data, ready for any front end."""

    ok: bool
    text: str
    """For a model."""
    data: Json
    """The same for a program."""
    structured: Json | None = None
    """As much of `data` as a model is given beside the text; None for tools that only look."""
    warnings: tuple[str, ...] = ()
    error: SureholdError | None = None
    content: tuple[Json, ...] = ()
    """More for a model than text: images, audio, embedded resources, as MCP spells them."""


P = TypeVar("P", bound=Params)
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
    guide: str = field(default="", repr=False)
    """What a model should know beyond the description."""
    brief: str = field(default="", repr=False)
    """The same in a third of the words."""

    def __call__(self, context: CallContext, params: P) -> R:
        """Call it from Python, with types."""
        return self.run(context, params)

    @cached_property
    def input_schema(self) -> Json:
        """What it takes."""
        return params_schema(self.params)

    @cached_property
    def output_schema(self) -> Json | None:
        """What it answers, success or failure; None for tools that only look, whose answer is text."""
        return None if self.hints.read_only else self.wire.output_schema(self.result)

    def call(self, context: CallContext, arguments: Mapping[str, Any]) -> Answer:
        """Call it with plain data; a refusal is an answer too, and the ledger hears of it."""
        try:
            context.raise_if_cancelled()
            params, warnings = self.parse_arguments(arguments, deprecated_names=context.deprecated_names)
            result = self.run(context, params)
        except SureholdError as error:
            return self._record_refusal(context, arguments, error)
        text = "\n".join([result.text(context.budget), *(f"Warning: {warning}" for warning in warnings)])
        data = self.wire.success(result, warnings)
        fitted = result.cut_to_budget(context.budget)
        shown = None if self.hints.read_only else data if fitted is result else self.wire.success(fitted, warnings)
        blocks = result.content_blocks()
        return Answer(ok=result.ok, text=text, data=data, structured=shown, warnings=warnings, content=blocks)

    def parse_arguments(
        self, arguments: Mapping[str, Any], *, deprecated_names: bool = True
    ) -> tuple[P, tuple[str, ...]]:
        """Turn plain data into Params, with a warning for every unknown argument."""
        known = self.params.known_names()
        given, warnings = dict(arguments), list[str]()
        for name in sorted(set(arguments) - known):
            instead = self.params.DEPRECATED.get(name) if deprecated_names else None
            warnings.append(
                f"`{name}` is deprecated; use `{instead}`." if instead else f"Unknown argument `{name}` was ignored."
            )
            value = given.pop(name)
            if instead:
                given.setdefault(instead, value)
        try:
            return self.params.model_validate(given), tuple(warnings)
        except ValidationError as invalid:
            raise _invalid_argument(self.name, self.params, invalid) from None

    def _record_refusal(self, context: CallContext, arguments: Mapping[str, Any], error: SureholdError) -> Answer:
        hints = self.hints
        if hints.operation and not error.recorded and not (arguments.get("dryRun") or arguments.get("dry_run")):
            named = next((str(arguments[name]) for name in _PATH_ARGUMENTS if isinstance(arguments.get(name), str)), "")
            path = (named or error.path or "")[:_MAX_PATH_CHARS]
            context.session.record_refusal(path, tool=self.name, operation=hints.operation, error=error)
        return self.refusal_answer(error)

    def refusal_answer(self, error: SureholdError) -> Answer:
        """Spell an error as the answer to a call; after a bug nobody knows whether something was written."""
        changes = not self.hints.read_only
        text = self.wire.failure_text(error, wrote_nothing=changes and error.reason != "bug")
        data = self.wire.failure(error)
        return Answer(ok=False, text=text, data=data, structured=data if changes else None, error=error)


AnyTool = Tool[Any, Any]

_MAX_PROBLEMS = 20
_MAX_PATH_CHARS = 4_096
_PATH_ARGUMENTS = ("path", "file_path", "fromPath", "notebook_path", "trashedPath", "trashId")
"""Where a call names the file it is about, for the ledger."""


def tool(
    name: str, *, hints: Hints, wire: Wire, guide: str = "", brief: str = ""
) -> Callable[[Callable[[CallContext, P], R]], Tool[P, R]]:
    """Make a tool of a function whose types and docstring say the rest."""

    def make_tool(run: Callable[[CallContext, P], R]) -> Tool[P, R]:
        types = get_type_hints(run)
        return Tool(
            name=name,
            description=inspect.cleandoc(run.__doc__ or ""),
            params=types["params"],
            result=types["return"],
            hints=hints,
            wire=wire,
            run=run,
            guide=guide,
            brief=brief,
        )

    return make_tool


def _invalid_argument(name: str, params: type[Params], invalid: ValidationError) -> InvalidArgument:
    problems = [
        {"argument": ".".join(map(str, error["loc"])) or "(arguments)", "problem": _describe_problem(params, error)}
        for error in invalid.errors()[:_MAX_PROBLEMS]
    ]
    first = problems[0]
    return InvalidArgument(
        f"`{name}` cannot use `{first['argument']}`: {first['problem']}.",
        action="Correct the arguments and call again.",
        problems=problems,
    )


def _describe_problem(params: type[Params], error: ErrorDetails) -> str:
    if error["type"] == "missing":
        return "it is required and was not sent"
    if error["type"] != "extra_forbidden":
        return error["msg"]
    allowed = _allowed_keys_at(params_schema(params), error["loc"][:-1])
    return f"Unknown key; allowed are {', '.join(allowed)}" if allowed else "Unknown key"


def _allowed_keys_at(schema: Json, location: tuple[int | str, ...]) -> list[str]:
    """Return the keys that an object at this place of the arguments may have."""
    for step in location:
        inner = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
        if not isinstance(inner, dict):
            return []
        schema = cast("Json", inner)
    return sorted(schema.get("properties", {}))
