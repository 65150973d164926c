"""Typed methods for the tools of the multi_edit family. The family is loaded by the first call."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surehold.dialects.tool_session import ToolSession

if TYPE_CHECKING:
    from surehold.dialects.multi_edit.edit_text_file import EditTextResult
    from surehold.dialects.multi_edit.multi_edit_text_file import MultiEditResult
    from surehold.dialects.multi_edit.read_text_file import ReadTextResult
    from surehold.dialects.multi_edit.write_text_file import WriteTextResult


class MultiEditMethods(ToolSession):
    """multi_edit_text_file and its siblings from Python. Paths are absolute."""

    def multi_edit_text_file(
        self, path: str, edits: Sequence[tuple[str, str]], *, expected_sha256: str = ""
    ) -> "MultiEditResult":
        """Replace texts one after the other, each looking at the result of the one before; all of them or none."""
        from surehold.dialects.multi_edit.multi_edit_text_file import EditOp, MultiEditParams, multi_edit_text_file

        params = MultiEditParams(
            path=path,
            edits=[EditOp(old_string=old, new_string=new) for old, new in edits],
            expected_sha256=expected_sha256,
        )
        return multi_edit_text_file(self._context, params)

    def edit_text_file(
        self, path: str, old_string: str, new_string: str, *, expected_sha256: str = ""
    ) -> "EditTextResult":
        """Replace a text that stands exactly once."""
        from surehold.dialects.multi_edit.edit_text_file import EditTextParams, edit_text_file

        params = EditTextParams(
            path=path, old_string=old_string, new_string=new_string, expected_sha256=expected_sha256
        )
        return edit_text_file(self._context, params)

    def read_text_file(self, path: str, *, line: int | None = None, limit: int | None = None) -> "ReadTextResult":
        """Read some lines of a text file."""
        from surehold.dialects.multi_edit.read_text_file import ReadTextParams, read_text_file

        return read_text_file(self._context, ReadTextParams(path=path, line=line, limit=limit))

    def write_text_file(self, path: str, content: str, *, expected_sha256: str = "") -> "WriteTextResult":
        """Make a file, or overwrite one that this session has read."""
        from surehold.dialects.multi_edit.write_text_file import WriteTextParams, write_text_file

        return write_text_file(
            self._context, WriteTextParams(path=path, content=content, expected_sha256=expected_sha256)
        )
