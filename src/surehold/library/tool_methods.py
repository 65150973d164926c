"""The methods of a session: one for each tool, made from its definition when it is first looked up.

A family is imported when one of its methods is. Type checkers read `tool_methods.pyi`, which `make fix` writes from the same
definitions.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from surehold.library.families import FAMILIES
from surehold.tools.call import AnswerBudget, CallContext, parse_arguments
from surehold.tools.signature import arguments_from_python, method_signature
from surehold.tools.spec import AnyTool
from surehold.workspace.session import Session

_UNLIMITED_BUDGET = AnswerBudget(lines=1 << 30, characters=1 << 40, tokens=1 << 40)
"""A program is given everything at once."""


class _MethodsOnDemand(type):
    """Adds the methods of a family to `ToolMethods` when one of them is looked up."""

    def __getattr__(cls, name: str) -> Any:
        prefixed = [family for family in FAMILIES if name.startswith(f"{family}_")]
        for family in [] if name.startswith("_") else prefixed or FAMILIES:
            _add_methods(family)
            if name in vars(ToolMethods):
                return vars(ToolMethods)[name]
        raise AttributeError(f"{cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)

    def __dir__(cls) -> list[str]:
        for family in FAMILIES:
            _add_methods(family)
        return [*super().__dir__()]


class ToolMethods(metaclass=_MethodsOnDemand):
    """A method for every tool. It takes the tool's arguments in snake_case and returns its result; a refusal is raised."""

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name).__get__(self)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *vars(self)})


def _add_methods(family: str) -> None:
    for tool in import_module(f"surehold.dialects.{family}").TOOLS:
        if tool.method not in vars(ToolMethods):
            setattr(ToolMethods, tool.method, _make_method(tool))


def _make_method(tool: AnyTool) -> Callable[..., Any]:
    signature = method_signature(tool)

    def method(self: Session, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name != "self"}
        params, _ = parse_arguments(tool.name, tool.params, arguments_from_python(tool.params, given))
        return tool(CallContext(session=self, budget=_UNLIMITED_BUDGET), params)

    method.__name__, method.__qualname__ = tool.method, f"{ToolMethods.__name__}.{tool.method}"
    method.__doc__ = tool.description
    method.__dict__["__signature__"] = signature
    return method
