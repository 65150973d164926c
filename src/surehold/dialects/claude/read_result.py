"""The result of `Read`, for every kind of file."""

import os
from base64 import b64encode
from typing import Any, Literal, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from surehold.dialects.shared.params import CamelResult
from surehold.text.escape import escape_text
from surehold.text.lines import NewlineStyle
from surehold.tools.call import AnswerBudget
from surehold.tools.spec import Json


class _SparseModel(BaseModel):
    """Says only what there is to say."""

    @classmethod
    def from_known(cls, **facts: Any) -> Self:
        """Make it of what is known; `total_lines` says also that it is not."""
        return cls(**{name: value for name, value in facts.items() if value is not None or name == "total_lines"})


class _ReadResultPart(_SparseModel):
    """A part of a result, in camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, populate_by_name=True, defer_build=True)


class Dimensions(_ReadResultPart):
    """Pixels of an image as it is meant to be seen, and as it is shown."""

    original_width: int
    original_height: int
    display_width: int
    display_height: int


class ImagePart(_ReadResultPart):
    """An image inside of something else."""

    mime_type: str
    base64: str = Field(exclude=True, repr=False)
    """Only in Python: over MCP it is the content block of this number."""
    content_index: int
    width: int
    height: int
    image: int | None = None
    """Its number in the text of a notebook."""

    def to_content_block(self) -> Json:
        return {"type": "image", "data": self.base64, "mimeType": self.mime_type}


class PagePart(_ReadResultPart):
    """One page of a document."""

    page: int
    text: str
    image: ImagePart | None = None
    notice: str | None = None


class FileReadResult(CamelResult, _SparseModel):
    """A file as it is shown. Which fields there are depends on its type."""

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
        return "\n".join(part for part in (body, notice) if part) or f"[{escape_text(self.file_path)} is empty]"

    def content_blocks(self) -> tuple[Json, ...]:
        if self.type == "image":
            return ({"type": "image", "data": self.base64, "mimeType": self.mime_type},)
        if self.type == "pdf":
            resource = {
                "uri": f"file://{quote(os.fsencode(self.file_path))}",
                "mimeType": self.mime_type,
                "blob": self.base64,
            }
            return ({"type": "resource", "resource": resource},)
        pictures = [page.image for page in self.pages or ()] + list(self.images or ())
        return tuple(one.to_content_block() for one in pictures if one)


def encode_base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
