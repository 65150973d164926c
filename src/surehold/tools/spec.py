"""Params + Result + docstring + Hints + Wire = a tool.

```python
@tool("count_lines", hints=Hints(kind="read", read_only=True), wire=WIRE)
def count_lines(session: Session, params: CountParams) -> CountResult:
    \"\"\"Count the lines of a file.\"\"\"
```

From this come the MCP tool, the command, the typed Python function, the events of an editor and the reference page.
Unknown arguments at the top are ignored with a warning, since some hosts inject their own; inside a nested object they
are an error that lists the allowed names.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from surehold.errors import InvalidArgument, SureholdError
from surehold.tools.schema import slim_schema
from surehold.workspace.session import Session

Kind = Literal["read", "edit", "delete", "move", "search", "other"]
Json = dict[str, Any]


class Params(BaseModel):
    """The arguments of a tool. An attribute's docstring is its description."""

    model_config = ConfigDict(use_attribute_docstrings=True, frozen=True, populate_by_name=True)


class Part(BaseModel):
    """An object nested in the arguments; foreign keys are refused."""

    model_config = ConfigDict(use_attribute_docstrings=True, frozen=True, populate_by_name=True, extra="forbid")


class Result(BaseModel):
    """What a tool returns when it succeeds."""

    model_config = ConfigDict(use_attribute_docstrings=True, frozen=True, populate_by_name=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a host may want to know before it calls."""

    kind: Kind
    title: str = ""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


class Wire(Protocol):
    """How a dialect spells success and failure."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        """Spell a result."""
        ...

    def failure(self, error: SureholdError) -> Json:
        """Spell an error."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call came to: plain data, ready for any front end."""

    ok: bool
    data: Json
    warnings: tuple[str, ...] = ()
    error: SureholdError | None = None


P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=Result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[P, R]):
    """One tool, defined once."""

    name: str
    description: str
    params: type[P]
    result: type[R]
    hints: Hints
    wire: Wire = field(repr=False)
    run: Callable[[Session, P], R] = field(repr=False)

    def __call__(self, session: Session, params: P) -> R:
        """Call it from Python, with types."""
        return self.run(session, params)

    def call(self, session: Session, arguments: Mapping[str, Any]) -> Answer:
        """Call it with plain data; a refusal is an answer too."""
        try:
            params, warnings = self.parse(arguments)
            return Answer(ok=True, data=self.wire.success(self.run(session, params), warnings), warnings=warnings)
        except SureholdError as error:
            return Answer(ok=False, data=self.wire.failure(error), error=error)

    def parse(self, arguments: Mapping[str, Any]) -> tuple[P, tuple[str, ...]]:
        """Turn plain data into Params, with a warning for every unknown argument."""
        known = {name for key, info in self.params.model_fields.items() for name in (key, info.alias) if name}
        unknown = sorted(set(arguments) - known)
        warnings = tuple(f"Unknown argument `{name}` was ignored." for name in unknown)
        try:
            return self.params.model_validate({k: v for k, v in arguments.items() if k in known}), warnings
        except ValidationError as invalid:
            raise _invalid_argument(self.name, self.params, invalid) from None


def tool(name: str, *, hints: Hints, wire: Wire) -> Callable[[Callable[[Session, P], R]], Tool[P, R]]:
    """Make a tool of a function whose types and docstring say the rest."""

    def make(run: Callable[[Session, P], R]) -> Tool[P, R]:
        types = get_type_hints(run)
        return Tool(
            name=name,
            description=inspect.cleandoc(run.__doc__ or ""),
            params=types["params"],
            result=types["return"],
            hints=hints,
            wire=wire,
            run=run,
        )

    return make


def _invalid_argument(name: str, params: type[Params], invalid: ValidationError) -> InvalidArgument:
    problems = [
        {"argument": ".".join(map(str, error["loc"])) or "(arguments)", "problem": _problem(params, error)}
        for error in invalid.errors()
    ]
    first = problems[0]
    return InvalidArgument(
        f"`{name}` cannot use `{first['argument']}`: {first['problem']}.",
        action="Correct the arguments and call again.",
        problems=problems,
    )


def _problem(params: type[Params], error: ErrorDetails) -> str:
    if error["type"] != "extra_forbidden":
        return error["msg"]
    allowed = _keys_at(slim_schema(params), error["loc"][:-1])
    return f"Unknown key; allowed are {', '.join(allowed)}" if allowed else "Unknown key"


def _keys_at(schema: Json, location: tuple[int | str, ...]) -> list[str]:
    """Return the keys that an object at this place of the arguments may have."""
    for step in location:
        inner = schema.get("items") if isinstance(step, int) else schema.get("properties", {}).get(step)
        if not isinstance(inner, dict):
            return []
        schema = cast("Json", inner)
    return sorted(schema.get("properties", {}))
