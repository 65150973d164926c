"""`{ok: true, data}` and `{ok: false, error}`, and the same as text for a model."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic.alias_generators import to_camel

from surehold.dialects.shared.details import detail_rows
from surehold.errors import RecoveryRequired, SureholdError
from surehold.tools.schema import Json, bare_schema
from surehold.tools.spec import Result


class OkWire:
    """Spells results as `{ok, data}` or `{ok, error}`."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        """Spell a result; warnings about the call itself join those of the tool."""
        data = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        if warnings:
            data["warnings"] = [*data.get("warnings", ()), *warnings]
        return {"ok": True, "data": data} if result.ok else {"ok": False, "data": data, "error": result.trouble()}

    def failure(self, error: SureholdError) -> Json:
        """Spell an error."""
        details = cast("Json", _camel(error.details))
        body: Json = {
            "kind": error.kind,
            "reason": error.reason,
            "code": error.code,
            "message": error.message,
            "details": details,
            "recoverable": error.recoverable,
            "suggestedNextAction": error.action,
        }
        if error.path is not None:
            body["path"] = error.path
        if isinstance(index := details.get("editIndex"), int):
            body["editIndex"] = index
        return {"ok": False, "error": body}

    def failure_text(self, error: SureholdError, *, wrote_nothing: bool) -> str:
        """Say what is wrong, what to do next, and what is needed to do it."""
        first = "Nothing was written. " if wrote_nothing and not isinstance(error, RecoveryRequired) else ""
        head = f"{first}{error.kind}: {error.message}"
        rows = [head, error.action, *detail_rows(cast("Json", _camel(error.details)))]
        return "\n".join(row for row in rows if row)

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: only `ok` is always there."""
        return {
            "type": "object",
            "properties": {
                "ok": {"type": "boolean"},
                "data": bare_schema(result),
                "error": {"type": "object"},
            },
            "required": ["ok"],
        }


WIRE = OkWire()


def _camel(value: Any) -> Any:
    """Spell the keys of our own details as the family does; keys that are paths stay."""
    if isinstance(value, Mapping):
        rows = cast("Mapping[str, Any]", value)
        return {to_camel(key) if key.isidentifier() else key: _camel(inner) for key, inner in rows.items()}
    if isinstance(value, (list, tuple)):
        return [_camel(inner) for inner in cast("Iterable[Any]", value)]
    return value
