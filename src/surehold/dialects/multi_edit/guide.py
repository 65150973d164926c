"""What a model should know about edits one after the other, in full and in a third of the words."""

GUIDE = """\
Editing with multi_edit_text_file, edit_text_file and write_text_file:
- Paths are absolute here.
- The edits of one call apply in order, each to the result of the one before. Every `old_string` must stand exactly once when its
  turn comes; copy it exactly, with enough around it. All of them are written, or none.
- `line_ranges` are lines just before each edit; the diff goes from the original to the final text.
- write_text_file overwrites only what was read in this conversation with read_text_file, or whose `expected_sha256` is sent.
- An error names the edit by its number, from 0. Nothing was written then: correct that edit, and send all of them again."""

BRIEF = """\
For the *_text_file tools paths are absolute. Edits of one call apply in order, each to the result of the one before, each
old_string standing exactly once at its turn: all of them or none. Overwrite only what was read."""
