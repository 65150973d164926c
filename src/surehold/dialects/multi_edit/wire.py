"""The multi_edit family's spelling: plain results with `_meta`, and `{error: {code, message, data}}`."""

from surehold.dialects.shared.details import detail_rows
from surehold.errors import RecoveryRequired, SureholdError
from surehold.tools.schema import Json, bare_schema
from surehold.tools.spec import Result

_SAID = frozenset({"edit_index", "prior_index", "old_string", "count"})
"""Details that the message says."""


class ContractWire:
    """Spells results and errors as the contract does; what it does not know goes to `_meta` and to `data`."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        """Spell a result; warnings about the call itself join those of the tool, where there is room for any."""
        data = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        if warnings and "_meta" in data:
            data["_meta"]["warnings"] = [*data["_meta"].get("warnings", ()), *warnings]
        return data

    def failure(self, error: SureholdError) -> Json:
        """Spell an error; `data` holds what one retry needs."""
        data: Json = {"kind": error.kind, "reason": error.reason, "suggested_action": error.action}
        if error.path is not None:
            data["path"] = error.path
        return {"error": {"code": error.code, "message": error.message, "data": {**data, **error.details}}}

    def failure_text(self, error: SureholdError, *, wrote_nothing: bool) -> str:
        """Say the message and nothing before it; then what to do next, and what is needed to do it."""
        first = "Nothing was written. " if wrote_nothing and not isinstance(error, RecoveryRequired) else ""
        details = {key: value for key, value in error.details.items() if key not in _SAID}
        rows = [error.message, f"{first}{error.action}".strip(), *detail_rows(details)]
        return "\n".join(row for row in rows if row)

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: nothing is always there."""
        fields = bare_schema(result)["properties"]
        named = {name: kind for name, kind in fields.items() if name != "_meta"}  # that is not shown to models
        return {"type": "object", "properties": {**named, "error": {"type": "object"}}}


WIRE = ContractWire()
