"""The tools of a session as plain Python functions, for every framework that makes tools of functions.

Each has a typed signature and a docstring with its arguments, and returns text; a refusal is text too, so that the model reads it.
"""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from surehold.adapters.shell import AnySession
from surehold.adapters.tool_calls import Json, SessionTool, session_tools
from surehold.library.families import DEFAULT_FAMILIES

_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "object": dict[str, Any]}


def plain_functions(
    session: AnySession, tools: str = DEFAULT_FAMILIES, *, shell: bool = False
) -> list[Callable[..., str]]:
    """Return a function for each tool; with `shell` also `run_command`, which runs under capture."""
    return [_plain_function(one) for one in session_tools(session, tools, shell=shell)]


def async_functions(
    session: AnySession, tools: str = DEFAULT_FAMILIES, *, shell: bool = False
) -> list[Callable[..., Coroutine[Any, Any, str]]]:
    """Return the same as coroutine functions."""
    return [_async_function(one) for one in session_tools(session, tools, shell=shell)]


def _plain_function(tool: SessionTool) -> Callable[..., str]:
    signature = _signature_of(tool.schema)

    def function(*args: Any, **kwargs: Any) -> str:
        return tool.call(_given(signature, *args, **kwargs)).text

    return _dress(function, tool, signature)


def _async_function(tool: SessionTool) -> Callable[..., Coroutine[Any, Any, str]]:
    signature = _signature_of(tool.schema)

    async def function(*args: Any, **kwargs: Any) -> str:
        return (await tool.call_async(_given(signature, *args, **kwargs))).text

    return _dress(function, tool, signature)


def _given(signature: inspect.Signature, *args: Any, **kwargs: Any) -> Json:
    """Return the arguments by their names; None is what a framework passes for one that a model left out."""
    bound = signature.bind(*args, **kwargs)
    return {name: value for name, value in bound.arguments.items() if value is not None}


def _dress(function: Any, tool: SessionTool, signature: inspect.Signature) -> Any:
    notes = {name: one.get("description", "") for name, one in tool.schema["properties"].items()}
    rows = [f"    {name}: {notes[name] or name}" for name in signature.parameters]
    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = "\n".join([tool.description, "", "Args:", *rows])
    function.__signature__ = signature
    function.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()} | {"return": str}
    return function


def _signature_of(schema: Json) -> inspect.Signature:
    required = schema.get("required", [])
    names = [*required, *(name for name in schema["properties"] if name not in required)]
    rows = [_parameter(name, schema["properties"][name], is_required=name in required) for name in names]
    return inspect.Signature(rows, return_annotation=str)


def _parameter(name: str, schema: Json, *, is_required: bool) -> inspect.Parameter:
    kind, python_type = inspect.Parameter.POSITIONAL_OR_KEYWORD, _type_of(schema)
    if is_required:
        return inspect.Parameter(name, kind, annotation=python_type)
    default = schema.get("default")
    return inspect.Parameter(
        name, kind, annotation=python_type if default is not None else python_type | None, default=default
    )


def _type_of(schema: Json) -> Any:
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if schema.get("type") == "array":
        return list[_type_of(schema["items"])]
    return _TYPES.get(schema.get("type", ""), Any)
