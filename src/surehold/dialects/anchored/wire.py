"""The anchored family's spelling: plain results, and `{error, message, suggested_action, details}`."""

from surehold.dialects.shared.details import detail_rows
from surehold.errors import LineEditError, NotEncodable, RecoveryRequired, SureholdError
from surehold.tools.schema import Json, bare_schema
from surehold.tools.spec import Result


class AnchoredWire:
    """Spells results as they are, in snake_case."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> Json:
        """Spell a result; warnings about the call itself join those of the tool."""
        data = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {**data, "warnings": [*data.get("warnings", ()), *warnings]} if warnings else data

    def failure(self, error: SureholdError) -> Json:
        """Spell an error; the next step is one word where the family has one for it."""
        step = error.step if isinstance(error, LineEditError) else error.action
        details = {"next": error.action, "reason": error.reason, **error.details}
        if error.path is not None:
            details["path"] = error.path
        return {"error": _kind(error), "message": error.message, "suggested_action": step, "details": details}

    def failure_text(self, error: SureholdError, *, wrote_nothing: bool) -> str:
        """Say what is wrong, what to do next, and what is needed to do it."""
        first = "Nothing was written. " if wrote_nothing and not isinstance(error, RecoveryRequired) else ""
        known = ("safety_status", "operation_index", "op", "field", "fresh_lines")  # the message says these
        details = {key: value for key, value in error.details.items() if key not in known}
        if len(details.get("problems", ())) == 1:
            del details["problems"]  # the message says it
        return "\n".join([f"{first}{_kind(error)}: {error.message}", error.action, *detail_rows(details)])

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: nothing is always there."""
        fields = bare_schema(result)["properties"]
        declared = {name: fields[name] for name in _DECLARED}
        return {"type": "object", "properties": {**declared, "error": {"type": "string"}}}


WIRE = AnchoredWire()
_DECLARED = ("operations_applied", "must_refresh_from_line", "diff", "new_anchors", "sha256", "change_id")
"""Fields that the schema names; each result has more."""


def _kind(error: SureholdError) -> str:
    return "encoding_unencodable" if isinstance(error, NotEncodable) else error.kind
