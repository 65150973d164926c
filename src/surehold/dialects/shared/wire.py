"""The files family's output: `{ok: true, data}` or `{ok: false, error}` for programs, and refusals as text for a model.

`detail_rows` formats the details of a refusal for all families.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic.alias_generators import to_camel

from surehold.errors import RecoveryRequired, SureholdError
from surehold.tools.schema import Json, result_schema
from surehold.tools.spec import Result

_DETAILS_IN_MESSAGE = frozenset({"editIndex", "oldText"})
"""Details that the message says, or the caller sent."""
_DETAIL_CHARS = 2_000
"""How many characters of one detail a model is shown; programs get all of it."""


def detail_rows(details: Json) -> list[str]:
    """Lay details out for reading: one line each, longer texts as blocks."""
    rows = list[str]()
    for key, value in details.items():
        if key in _DETAILS_IN_MESSAGE or value in (None, "", [], {}) or (value is False and key != "editsStillApply"):
            continue
        rows.append(_detail_text(key, value))
    return rows


def _detail_text(key: str, value: Any) -> str:
    if isinstance(value, str):
        shown = value if len(value) <= _DETAIL_CHARS else value[:_DETAIL_CHARS] + "…"
        return f"{key}:\n{shown.rstrip()}" if "\n" in shown else f"{key}: {shown}"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if any(isinstance(item, str) and "|" in item for item in items):  # rows of a file
            return "\n".join([f"{key}:", *map(str, items)])
        if all(isinstance(item, (int, str)) for item in items):
            return f"{key}: " + ", ".join(map(str, items))
        return "\n".join([f"{key}:", *(f"- {_inline_text(item)}" for item in items)])
    return f"{key}: {_inline_text(value)}"


def _inline_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_inline_text(inner)}" for key, inner in cast("Json", value).items())
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class OkWire:
    """Spells results as `{ok, data}` or `{ok, error}`."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        """Spell a result; warnings about the call itself join those of the tool."""
        data = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        if warnings:
            data["warnings"] = [*data.get("warnings", ()), *warnings]
        return (
            {"ok": True, "data": data} if result.ok else {"ok": False, "data": data, "error": result.failure_details()}
        )

    def failure(self, error: SureholdError) -> Json:
        """Spell an error."""
        details = cast("Json", _camel_case_keys(error.details))
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
        rows = [head, error.action, *detail_rows(cast("Json", _camel_case_keys(error.details)))]
        return "\n".join(row for row in rows if row)

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: only `ok` is always there."""
        return {
            "type": "object",
            "properties": {
                "ok": {"type": "boolean"},
                "data": result_schema(result),
                "error": {"type": "object"},
            },
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
