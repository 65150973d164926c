"""JSON schemas as models read them: no titles, no references, a stable order."""

from typing import Any, cast

from pydantic import BaseModel

Json = dict[str, Any]


def slim_schema(model: type[BaseModel]) -> Json:
    """Return the schema of a model, with every reference written out."""
    schema = model.model_json_schema(by_alias=True)
    definitions = cast("Json", schema.pop("$defs", {}))
    slim = _slim(schema, definitions)
    slim.pop("description", None)  # the tool's own description says it
    return slim


def _slim(node: Any, definitions: Json) -> Any:
    if isinstance(node, list):
        return [_slim(item, definitions) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    row = cast("Json", node)
    if "$ref" in row:
        target = definitions[str(row["$ref"]).rsplit("/", 1)[-1]]
        return _slim({**target, **{k: v for k, v in row.items() if k != "$ref"}}, definitions)
    return {
        k: _properties(v, definitions) if k == "properties" else _slim(v, definitions)
        for k, v in row.items()
        if k != "title"
    }


def _properties(node: Json, definitions: Json) -> Json:
    """Slim every property; one that is itself called `title` stays."""
    return {name: _slim(value, definitions) for name, value in node.items()}
