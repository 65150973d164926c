"""The anchored family's output: plain results, errors as `{error, message, suggested_action, details}`, and its guide for models."""

from surehold.errors import InvalidArgument, LineEditError, NotEncodable, SchemaInvalid, SureholdError
from surehold.tools.call import Json
from surehold.tools.spec import Result, Wire

GUIDE = """\
Editing by anchors with `edit`:
- Identity: in the rows `N#HASH|text` of read_file(hashes: true) the line number is advisory (a position in that snapshot) only;
  the hash is the authoritative identity of the line.
- Freshness: after reading a file with hashes, edit it in the same response turn or the next one. Do not read file A, then file B,
  and edit A later: its anchors may be stale by then. Finish one file (read, edit) before you read anchors of another.
- Choosing anchors: prefer lines with unique, distinctive content. Avoid empty lines, closing braces and repeated boilerplate
  (`position: fixed;`, `display: flex;`, `</div>`); rows marked `!` are bad anchors, rows marked `~` middling ones. Where
  content repeats, use replace_range between two distinctive lines: both ends must be unique. To name one of several equal lines,
  copy its whole anchor with the `.K` at its end, or send hash with occurrence (from 1) and line together.

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
  insert_before take `hash`; replace_range and delete_range take `start_hash` and `end_hash`. Mixing them, such as `start_hash`
  with a replace_line, is refused.
- The answer shows the changed lines with fresh anchors, and a refusal shows what is there now: go on from those, without reading
  the file again."""

_SCHEMA_FIELDS = ("operations_applied", "must_refresh_from_line", "diff", "new_anchors", "sha256", "change_id")
"""Fields that the schema names; each result has more."""


class AnchoredWire(Wire):
    """Spells results as they are, in snake_case."""

    in_message = frozenset({"safety_status", "operation_index", "op", "field", "fresh_lines"})
    error_type = "string"

    def failure(self, error: SureholdError) -> Json:
        """Spell an error; the next step is one word where the family has one for it."""
        step = error.step if isinstance(error, LineEditError) else error.action
        details = {"next": error.action, "reason": error.reason, **error.details}
        if error.path is not None:
            details["path"] = error.path
        return {"error": self.kind_of(error), "message": error.message, "suggested_action": step, "details": details}

    def kind_of(self, error: SureholdError) -> str:
        """Return the family's own kind: operations that cannot be read are `schema_invalid`, whatever is wrong with them."""
        if isinstance(error, NotEncodable):
            return "encoding_unencodable"
        return SchemaInvalid.kind if isinstance(error, InvalidArgument) else error.kind

    def declared_fields(self, result: type[Result]) -> Json:
        fields = super().declared_fields(result)
        return {name: fields[name] for name in _SCHEMA_FIELDS}


WIRE = AnchoredWire()
