"""The methods of a session: one for each tool, made from its definition when it is first looked up.

The default tools are methods of the session itself; other vocabularies are namespaces: `session.claude.Read(...)`. A family is
imported when one of its methods is, and what checks arguments with it. Type checkers read `tool_methods.pyi`, which `make fix` writes from the same definitions.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from inspect import Parameter, Signature
from os import PathLike, fsdecode
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin, get_type_hints

from surehold.errors import InvalidArgument
from surehold.library.call_threads import with_cancellation
from surehold.library.families import FAMILIES, NAMESPACES, tools_of
from surehold.library.python_words import speak_python
from surehold.tools.call import AnswerBudget, CallContext, Json
from surehold.workspace.session import Session

if TYPE_CHECKING:
    from surehold.tools.params import Params
    from surehold.tools.spec import AnyTool

SESSION_METHODS = ("turn", "undo", "redo", "answer", "notify_compaction")
"""The methods of a session that programs use beside the tools. What else it has is for front ends and adapters."""
_SESSION_FACTS = ("agent", "id", "turn_id", "workspace", *NAMESPACES)

_UNLIMITED_BUDGET = AnswerBudget(lines=1 << 30, page=1 << 40, answer=1 << 40, tokens=1 << 40)
"""A program is given everything at once."""
_KEY = "idempotency_key"
CANCELLED: ContextVar[Callable[[], bool]] = ContextVar("CANCELLED", default=lambda: False)
"""Tells a call of this context whether it was taken back; it is asked before anything is written."""


class _MethodsOnDemand(type):
    """Adds the methods of a family to `ToolMethods` when one of them is looked up."""

    def __getattr__(cls, name: str) -> Any:
        if not name.startswith("_"):
            for family in FAMILIES:
                if family not in NAMESPACES:
                    _add_methods(family)
                    if name in vars(ToolMethods):
                        return vars(ToolMethods)[name]
            if (method := _earlier_method(name)) is not None:
                return method
        raise AttributeError(f"{cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)

    def __dir__(cls) -> list[str]:
        tools = set[str]()
        for family in set(FAMILIES) - set(NAMESPACES):
            _add_methods(family)
            tools.update(tool.method for tool in tools_of(family))
        special = (name for name in super().__dir__() if name.startswith("__"))
        return sorted({*special, *tools, *SESSION_METHODS, *NAMESPACES})


class ToolMethods(metaclass=_MethodsOnDemand):
    """A method for every tool. It takes the tool's arguments in snake_case and returns its result; a refusal is raised."""

    @property
    def claude(self) -> "ToolNamespace":
        """Return the tools as Claude Code calls them: `session.claude.Read(...)`."""
        return namespace_class("claude")(self)

    @property
    def multi_edit(self) -> "ToolNamespace":
        """Return the tools that take absolute paths: `session.multi_edit.read_text_file(...)`."""
        return namespace_class("multi_edit")(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name).__get__(self)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *_SESSION_FACTS})


class AsyncToolMethods:
    """The same methods of a session of `surehold.aio`, which lends them; type checkers read them in the stub."""


class ToolNamespace:
    """The tools of one family, for a session. The methods are in its subclasses, one for each family."""

    def __init__(self, session: Any) -> None:
        self.session = session


@cache
def namespace_class(family: str) -> type[ToolNamespace]:
    """Make the class of a family's namespace."""
    methods = {tool.name: _make_method(tool, tool.name) for tool in tools_of(family)}
    about = f"The tools of the family `{family}`, for a session."
    return type(NAMESPACES[family], (ToolNamespace,), {**methods, "__doc__": about, "__module__": __name__})


def _add_methods(family: str) -> None:
    for tool in tools_of(family):
        if tool.method not in vars(ToolMethods):
            setattr(ToolMethods, tool.method, _make_method(tool, tool.method))


def _earlier_method(name: str) -> Callable[..., Any] | None:
    """Return a method by the name that it had before there were namespaces; its use is warned of."""
    named = ((family, tool) for family in NAMESPACES for tool in tools_of(family) if tool.method == name)
    if (found := next(named, None)) is None:
        return None
    family, tool = found
    new_name, current = f"session.{family}.{tool.name}", _make_method(tool, name)

    def method(self: Session, *args: Any, **kwargs: Any) -> Any:
        from warnings import warn

        warn(f"`session.{name}` is called `{new_name}` now.", DeprecationWarning, stacklevel=2)
        return current(self, *args, **kwargs)

    return method


def _make_method(tool: "AnyTool", name: str) -> Callable[..., Any]:
    from surehold.tools.params import parse_arguments

    signature = method_signature(tool)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name != "self"}
        key = given.pop(_KEY, "")
        session: Session = self.session if isinstance(self, ToolNamespace) else self
        with speak_python():
            params, _ = parse_arguments(tool.name, tool.params, arguments_from_python(tool.params, given))
            session = with_cancellation(session.with_idempotency_key(key), tool, CANCELLED.get())
            return tool(CallContext(session=session, budget=_UNLIMITED_BUDGET, cancelled=CANCELLED.get()), params)

    method.__name__ = name
    method.__doc__ = tool.description
    method.__dict__["__signature__"] = signature
    return method


def method_signature(tool: "AnyTool") -> Signature:
    """Return what the method takes: required arguments by position too, everything else by name."""
    from surehold.tools.params import NamesFile
    from surehold.tools.schema import ordered_fields

    fields = ordered_fields(tool.params)
    first = sorted(
        (name for name, info in fields.items() if info.is_required() or name in tool.params.POSITIONAL),
        key=lambda name: (not fields[name].is_required(), NamesFile() not in fields[name].metadata),
    )
    rows = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for name in (*first, *(name for name in fields if name not in first)):
        info = fields[name]
        kind = Parameter.POSITIONAL_OR_KEYWORD if name in first else Parameter.KEYWORD_ONLY
        is_needed = info.is_required() or info.alias in tool.params.DEMANDED
        default, python_type = Parameter.empty if is_needed else info.default, _python_type(info.annotation)
        if info.default_factory is not None:
            default, python_type = None, python_type | None
        rows.append(Parameter(name, kind, default=default, annotation=python_type))
    if not tool.hints.read_only:
        rows.append(Parameter(_KEY, Parameter.KEYWORD_ONLY, default="", annotation=str))
    return Signature(rows, return_annotation=tool.result)


def arguments_from_python(params: "type[Params]", given: Mapping[str, Any]) -> Json:
    """Return what a method was given as plain data; None means an empty list or mapping."""
    arguments = dict[str, Any]()
    for name, value in given.items():
        info = params.model_fields[name]
        if convert := _converter_of(info.annotation):
            arguments[name] = _convert_items(name, value, convert)
        elif isinstance(value, PathLike):
            arguments[name] = fsdecode(cast("PathLike[str]", value))
        elif value is not None or info.default_factory is None:
            arguments[name] = value
    return arguments


def _convert_items(name: str, given: Any, convert: Callable[[Any], Json]) -> list[Any]:
    """Return the items as plain data; those that are plain data already, as a model sends them, stay as they are."""
    items: Any = None if isinstance(given, str | bytes | Mapping) else given
    try:
        return [one if isinstance(one, Mapping) else _convert_item(one, convert) for one in items]
    except (TypeError, ValueError, LookupError, AttributeError):
        message = f"`{name}` is not a list of what this method takes."
        action = "Send pairs or values as its signature says, or dictionaries as the schema of the tool does."
        raise InvalidArgument(message, reason="bad_items", action=action) from None


def _convert_item(given: Any, convert: Callable[[Any], Json]) -> Json:
    if isinstance(given, str | bytes):  # its characters would be taken for the parts of a pair
        raise TypeError
    return convert(given)


def _converter_of(annotation: Any) -> Callable[[Any], Json] | None:
    """Return how an item of a list is made of what a program sends, where it may send something else."""
    return getattr(get_args(annotation)[0], "from_python", None) if get_origin(annotation) is list else None


def _python_type(annotation: Any) -> Any:
    """Return what a program may send: any sequence for a list, and the core's own values for nested objects."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is list:
        convert = _converter_of(annotation)
        return Sequence[next(iter(get_type_hints(convert).values())) if convert else inner[0]]
    if origin is dict:
        return Mapping[inner[0], inner[1]]
    return annotation
