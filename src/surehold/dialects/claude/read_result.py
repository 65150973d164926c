"""The result of `Read`, for every kind of file."""

import os
from base64 import b64encode
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from pydantic import Field

from surehold.dialects.shared.params import CamelResult, CamelResultPart
from surehold.text.escape import escape_text
from surehold.text.snapshot import NewlineStyle
from surehold.tools.call import AnswerBudget, Json


class Dimensions(CamelResultPart):
    """Pixels of an image as it is meant to be seen, and as it is shown."""

    original_width: int
    original_height: int
    display_width: int
    display_height: int


class ImagePart(CamelResultPart):
    """An image inside of something else."""

    mime_type: str
    base64: str = Field(exclude=True, repr=False)
    """Only in Python: over MCP it is the content block of this number."""
    content_index: int
    width: int
    height: int
    image: int | None = None
    """Its number in the text of a notebook."""


class PagePart(CamelResultPart):
    page: int
    text: str
    image: ImagePart | None = None
    notice: str | None = None


class FileReadResult(CamelResult):
    """A file as it is shown. Which fields there are depends on its type."""

    MAY_BE_UNKNOWN: ClassVar = frozenset({"total_lines"})

    type: Literal["text", "image", "notebook", "pdf", "parts", "file_unchanged"]
    file_path: str
    sha256: str | None = None
    notice: str | None = None
    """What a reader should know; it is in the text too."""
    truncated: bool = False
    """Less is here than was asked for; where it goes on is said."""
    # text
    content: str | None = None
    num_lines: int = 0
    start_line: int = 0
    total_lines: int | None = None
    """None in a file so large that it was not read to its end."""
    encoding: str | None = None
    eol: NewlineStyle | None = None
    next_offset: int | None = None
    next_column: int | None = None
    # image, pdf
    base64: str | None = Field(default=None, exclude=True, repr=False)
    """Only in Python: over MCP it is the content block of `content_index`."""
    content_index: int | None = None
    mime_type: str | None = None
    original_size: int | None = None
    dimensions: Dimensions | None = None
    frames: int | None = None
    # notebook
    cells: tuple[dict[str, Any], ...] | None = None
    total_cells: int | None = None
    language: str | None = None
    images: tuple[ImagePart, ...] | None = None
    # parts, pdf
    count: int | None = None
    """How many pages the document has."""
    pages: tuple[PagePart, ...] | None = None
    next_pages: str | None = None
    shown: str = Field(default="", exclude=True, repr=False)
    """What the text shows above the notice, where that is not the content."""

    def text(self, budget: AnswerBudget) -> str:  # noqa: ARG002 - it was cut to the budget when it was read
        body = self.content or self.shown
        notice = f"[{escape_text(self.notice)}]" if self.notice else ""
        rows = (f"[{self._following}]" if self._following else "", body, notice)
        return "\n".join(filter(None, rows)) or f"[{escape_text(self.file_path)} is empty]"

    @property
    def _following(self) -> str:
        """The call that goes on; the notice below names it too, since hosts cut at either end or between."""
        if self.next_pages:
            return f"goes on: pages={self.next_pages}"
        column = f" column={self.next_column}" if self.next_column else ""
        return f"goes on: offset={self.next_offset}{column}" if self.next_offset else ""

    def content_blocks(self) -> tuple[Json, ...]:
        if self.type == "image":
            return (_image_block(self),)
        if self.type == "pdf":
            uri = f"file://{quote(os.fsencode(self.file_path))}"
            return ({"type": "resource", "resource": {"uri": uri, "mimeType": self.mime_type, "blob": self.base64}},)
        pictures = [page.image for page in self.pages or ()] + list(self.images or ())
        return tuple(_image_block(one) for one in pictures if one)


def _image_block(image: ImagePart | FileReadResult) -> Json:
    return {"type": "image", "data": image.base64, "mimeType": image.mime_type}


def encode_base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
