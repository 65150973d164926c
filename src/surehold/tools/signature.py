"""The Python signature of a tool, made from its Params: what a method of a session takes, in snake_case, and returns."""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, get_args, get_origin, get_type_hints

from surehold.tools.call import NamesFile, Params
from surehold.tools.schema import Json, ordered_fields
from surehold.tools.spec import AnyTool


def method_signature(tool: AnyTool) -> Signature:
    """Return what the method takes: required arguments by position too, everything else by name."""
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
    return Signature(rows, return_annotation=tool.result)


def arguments_from_python(params: type[Params], given: Mapping[str, Any]) -> Json:
    """Return what a method was given as plain data; None means an empty list or mapping."""
    arguments = dict[str, Any]()
    for name, value in given.items():
        info = params.model_fields[name]
        if convert := _converter_of(info.annotation):
            arguments[name] = [convert(one) for one in value]
        elif value is not None or info.default_factory is None:
            arguments[name] = value
    return arguments


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
