"""A tool as it is listed: its name, its description, its schemas, and what a host may want to know before it calls.

Light to import: a server lists its tools without loading them.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from surehold.stores.base import Operation
    from surehold.tools.spec import AnyTool

Json = dict[str, Any]
Kind = Literal["read", "edit", "delete", "move", "search", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a host may want to know before it calls."""

    kind: Kind
    title: str = ""
    verb: str = ""
    """First word of the title of a call, where the kind says too little."""
    title_names_path: bool = True
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    always_loaded: bool = False
    """A host that loads definitions late should show it from the start: every task needs it."""
    loaded_when_alone: bool = False
    """The same where no such tool is served: the host has tools of this name, which a model would take instead."""
    atomic_argument: str = ""
    """The argument that says whether a call is one change or several; without one it is always one."""
    operation: "Operation | None" = None
    """What the ledger calls it, when it changes files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """A tool that is loaded when it is called."""

    name: str
    description: str
    hints: Hints
    guide: str
    brief: str
    input_schema: Json
    output_schema: Json | None
    load: "Callable[[], AnyTool]" = field(repr=False)


ListedTool: TypeAlias = "ToolListing | AnyTool"
"""What is known of a tool before it is called."""


def listing_data(tool: "AnyTool") -> Json:
    """Return what a listing is made of, as plain data."""
    told = {name: value for name, value in vars_of(tool.hints).items() if value != getattr(_UNSAID, name, None)}
    return {
        "name": tool.name,
        "description": tool.description,
        "hints": told,
        "guide": tool.guide,
        "brief": tool.brief,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
    }


def listing_from(data: Json, load: "Callable[[], AnyTool]") -> ToolListing:
    return ToolListing(
        name=data["name"],
        description=data["description"],
        hints=Hints(**data["hints"]),
        guide=data["guide"],
        brief=data["brief"],
        input_schema=data["inputSchema"],
        output_schema=data["outputSchema"],
        load=load,
    )


def vars_of(hints: Hints) -> dict[str, Any]:
    return {name: getattr(hints, name) for name in hints.__slots__}


_UNSAID = Hints(kind="other")
