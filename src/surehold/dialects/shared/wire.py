"""The files family's output: `{ok: true, data}` or `{ok: false, error}` for programs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic.alias_generators import to_camel

from surehold.errors import SureholdError
from surehold.tools.call import Json
from surehold.tools.schema import brief_result_schema
from surehold.tools.spec import Result, Wire


class OkWire(Wire):
    """Spells results as `{ok, data}` or `{ok, error}`, in camelCase."""

    in_message = frozenset(
        {
            "editIndex",
            "editIndices",
            "oldText",
            "hunk",
            "hunkLine",
            "hunks",
            "expected",
            "found",
            "alreadyApplied",
            "more",
        }
    )

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        body: Json = {"ok": result.ok, "data": super().success(result, warnings)}
        return body if result.ok else {**body, "error": result.failure_details()}

    def change_made(self, change_ids: Sequence[str], warning: str) -> Json:
        return {"ok": True, "data": {"changeId": change_ids[-1], "warnings": [warning]}}

    def failure(self, error: SureholdError) -> Json:
        details = self.details_of(error)
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

    def details_of(self, error: SureholdError) -> Json:
        return cast("Json", _camel_case_keys(error.details))

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: only `ok` is always there."""
        return {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}, "data": brief_result_schema(result), "error": {"type": "object"}},
            "required": ["ok"],
        }


WIRE = OkWire()


def _camel_case_keys(value: Any) -> Any:
    """Spell the keys of our own details as the family does; keys that are paths stay."""
    if isinstance(value, Mapping):
        rows = cast("Mapping[str, Any]", value)
        return {to_camel(key) if key.isidentifier() else key: _camel_case_keys(inner) for key, inner in rows.items()}
    if isinstance(value, (list, tuple)):
        return [_camel_case_keys(inner) for inner in cast("Iterable[Any]", value)]
    return value
