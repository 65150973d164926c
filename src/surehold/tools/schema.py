"""JSON schemas as models read them: no titles, no references, a stable order."""

from typing import Any, cast

from pydantic import BaseModel

Json = dict[str, Any]


def slim_schema(model: type[BaseModel], *, output: bool = False) -> Json:
    """Return the schema of what a model takes, or gives out, with every reference written out."""
    schema = model.model_json_schema(by_alias=True, mode="serialization" if output else "validation")
    definitions = cast("Json", schema.pop("$defs", {}))
    slim = _slim(schema, definitions)
    slim.pop("description", None)  # the tool's own description says it
    own = {info.alias or name for name, info in model.model_fields.items() if name in model.__annotations__}
    slim["properties"] = dict(sorted(slim.get("properties", {}).items(), key=lambda item: item[0] not in own))
    if demanded := getattr(model, "DEMANDED", ()):
        slim["required"] = [*slim.get("required", ()), *demanded]
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
    slim = {
        k: _properties(v, definitions) if k == "properties" else _slim(v, definitions)
        for k, v in row.items()
        if k != "title" and not (k == "default" and v in (None, "", [], ()))
    }
    return _without_null(slim)


def _without_null(row: Json) -> Json:
    """Drop null from what an argument may be: leaving it out says the same, and null is taken anyway."""
    options = [option for option in row.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) != 1 or len(options) == len(row["anyOf"]):
        return row
    return {**{k: v for k, v in row.items() if k != "anyOf"}, **options[0]}


def _properties(node: Json, definitions: Json) -> Json:
    """Slim every property; one that is itself called `title` stays."""
    return {name: _slim(value, definitions) for name, value in node.items()}
