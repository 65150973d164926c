"""The anchored family's output: plain results, errors as `{error, message, suggested_action, details}`, and its guide for models."""

from surehold.dialects.shared.wire import detail_rows
from surehold.errors import LineEditError, NotEncodable, RecoveryRequired, SureholdError
from surehold.tools.schema import Json, result_schema
from surehold.tools.spec import Result

GUIDE = """\
Editing by anchors with `edit`:
- Identity: in the rows `N#HASH|text` of read_file(hashes: true) the line number is advisory (a position in that snapshot) only;
  the hash is the authoritative identity of the line.
- Freshness: after reading a file with hashes, edit it in the same response turn or the next one. Do not read file A, then file B,
  and edit A later: its anchors may be stale by then. Finish one file (read, edit) before you read anchors of another.
- Choosing anchors: prefer lines with unique, distinctive content. Avoid empty lines, closing braces and repeated boilerplate
  (`position: fixed;`, `</div>`); rows marked `!` are bad anchors, rows marked `~` middling ones. Where content repeats, use
  replace_range between two distinctive lines. To name one of several equal lines, copy its whole anchor with the `.K` at its end,
  or send hash with occurrence (from 1) and line.

| situation | operation |
|---|---|
| change one line with unique content | replace_line |
| change a block of lines | replace_range |
| new lines between two lines | insert_after, insert_before |
| remove one unique line | delete_line |
| remove a block of lines | delete_range |
| the line repeats (empty, `}`, boilerplate) | replace_range around it, from one distinctive line to another |

- Several files: complete all operations on one file before the next: read A, edit A, read B, edit B. Send all operations on a
  file in one call: they are atomic and address the same snapshot.
- Parameters: `path` names the file (`file_path` is deprecated and will be rejected). replace_line, delete_line, insert_after and
  insert_before take `hash`; replace_range and delete_range take `start_hash` and `end_hash`. Mixing them is refused.
- The answer shows the changed lines with fresh anchors, and a refusal shows what is there now: go on from those, without reading
  the file again."""

BRIEF = """\
`edit`: copy anchors `N#HASH` from read_file(hashes: true); the number is advisory, the hash is the line's identity. Edit right after
reading, one file after the other, all operations on a file in one call. Pick distinctive lines, not blanks, braces or boilerplate (`!`
is bad, `~` middling); around repeated lines use replace_range. One line: replace_line, delete_line, insert_after, insert_before with
`hash`; a block: replace_range, delete_range with `start_hash`, `end_hash`. `path` names the file, `file_path` is deprecated.
Go on from the fresh anchors in the answer."""


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
        return {"error": _error_kind(error), "message": error.message, "suggested_action": step, "details": details}

    def failure_text(self, error: SureholdError, *, wrote_nothing: bool) -> str:
        """Say what is wrong, what to do next, and what is needed to do it."""
        first = "Nothing was written. " if wrote_nothing and not isinstance(error, RecoveryRequired) else ""
        known = ("safety_status", "operation_index", "op", "field", "fresh_lines")  # the message says these
        details = {key: value for key, value in error.details.items() if key not in known}
        if len(details.get("problems", ())) == 1:
            del details["problems"]  # the message says it
        return "\n".join([f"{first}{_error_kind(error)}: {error.message}", error.action, *detail_rows(details)])

    def output_schema(self, result: type[Result]) -> Json:
        """Return a schema that both forms fit: nothing is always there."""
        fields = result_schema(result)["properties"]
        declared = {name: fields[name] for name in _SCHEMA_FIELDS}
        return {"type": "object", "properties": {**declared, "error": {"type": "string"}}}


WIRE = AnchoredWire()
_SCHEMA_FIELDS = ("operations_applied", "must_refresh_from_line", "diff", "new_anchors", "sha256", "change_id")
"""Fields that the schema names; each result has more."""


def _error_kind(error: SureholdError) -> str:
    return "encoding_unencodable" if isinstance(error, NotEncodable) else error.kind
