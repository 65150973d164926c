"""JSON schemas as models read them: no titles, no references, a stable order.

They are written from the fields themselves. A field's docstring is its description; it is read from the source when a
schema is asked for. Asking pydantic for either would build every validator before the first call, which takes longer
than all the rest of starting a server.
"""

import ast
import linecache
import sys
import types
from collections.abc import Collection
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from surehold.tools.call import Json

_JSON_TYPES: dict[Any, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}
_UNSTATED_DEFAULTS = (None, "", (), False)
"""Defaults that go without saying."""
_RARE_DEFAULTS = (None, (), False)
"""Defaults of what most results do not have."""
_LIMIT_KEYWORDS = {"ge": "minimum", "le": "maximum"}
"""Limits that a schema names; how long a text or list may be is in its description where that matters."""


def ordered_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model; inherited ones come last."""
    names = sorted(model.model_fields, key=lambda name: name not in model.__annotations__)
    return {name: model.model_fields[name] for name in names}


def params_schema(model: type[BaseModel]) -> Json:
    fields = ordered_fields(model)
    required = [info.alias or name for name, info in fields.items() if info.is_required()]
    schema: Json = {
        "properties": {info.alias or name: _property_schema(model, name, info) for name, info in fields.items()},
        "required": [*required, *getattr(model, "DEMANDED", ())],
        "type": "object",
    }
    if not schema["required"]:
        del schema["required"]
    return {"additionalProperties": False, **schema} if model.model_config.get("extra") == "forbid" else schema


def result_schema(model: type[BaseModel]) -> Json:
    """Return the fields of a result and their types; nothing is required, since parts may be left out."""
    return {"type": "object", "properties": _result_fields(model, model.model_fields)}


def brief_result_schema(model: type[BaseModel]) -> Json:
    """Return the same without what all results of a kind may have and few do: inherited fields with such a default."""
    inherited = model.model_fields.keys() - model.__annotations__.keys()
    rare = {name for name in inherited if model.model_fields[name].default in _RARE_DEFAULTS}
    return {"type": "object", "properties": _result_fields(model, model.model_fields.keys() - rare)}


def _result_fields(model: type[BaseModel], names: Collection[str]) -> Json:
    fields = {name: info for name, info in model.model_fields.items() if name in names}
    return {
        info.serialization_alias or info.alias or name: _type_schema(info.annotation) for name, info in fields.items()
    }


def _property_schema(model: type[BaseModel], name: str, info: FieldInfo) -> Json:
    row: Json = {}
    if info.default_factory is None and not info.is_required() and info.default not in _UNSTATED_DEFAULTS:
        row["default"] = info.default
    if text := _field_docstring(model, name):
        row["description"] = text
    row |= _type_schema(info.annotation, write=params_schema)
    for limit in info.metadata:
        row |= {word: getattr(limit, mark) for mark, word in _LIMIT_KEYWORDS.items() if hasattr(limit, mark)}
    return row


def _type_schema(annotation: Any, write: Any = None) -> Json:
    """Return the schema of a type; null need not be named, since leaving an argument out says the same."""
    origin, inner = get_origin(annotation), [one for one in get_args(annotation) if one is not type(None)]
    if origin in (Union, types.UnionType):
        options = [_type_schema(one, write) for one in inner]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin is Literal:
        return {"enum": inner, "type": _JSON_TYPES[type(inner[0])]} if write else {"type": _JSON_TYPES[type(inner[0])]}
    if origin in (list, tuple):
        return {"items": _type_schema(inner[0], write), "type": "array"} if write else {"type": "array"}
    if origin is dict and write:
        return {"additionalProperties": _type_schema(inner[1], write), "type": "object"}
    if write and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return write(annotation)
    return {"type": _JSON_TYPES.get(annotation, "object")}


def _field_docstring(model: type[BaseModel], name: str) -> str:
    found = (_field_docstrings(base.__module__).get((base.__name__, name), "") for base in model.__mro__[:-2])
    return next((text for text in found if text), "")


@cache
def _field_docstrings(module: str) -> dict[tuple[str, str], str]:
    """Return the docstring below each annotated name of each class of a module."""
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    source = "".join(linecache.getlines(file, vars(loaded))) if file else ""
    found: dict[tuple[str, str], str] = {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, below in zip(node.body, node.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[node.name, name] = text
                case _:
                    pass
    return found
