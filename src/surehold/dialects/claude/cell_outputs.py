"""The outputs of a code cell, made fit to be shown: no terminal codes, no endless text, no broken image."""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from surehold.text.visible import safe_rows

OUTPUT_CHARACTERS = 10_000
"""How much text one cell's outputs may have together."""
_LOOKED_AT = 1 << 20
"""Of an endless text only so many characters at each end are looked at."""
_MOST_OUTPUTS = 50
_MOST_OTHERS = 5
_MOST_IMAGE_BYTES = 20 << 20
"""All images of one answer together."""

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]|\x9b[0-?]*[ -/]*[@-~]|\x1b"
)
_MIME = re.compile(r"[A-Za-z0-9][\w.+-]{0,60}/[A-Za-z0-9][\w.+-]{0,60}", re.ASCII)
_TEXTS = ("text/plain", "text/markdown", "text/latex")
"""Shown as text, the first of them that is there."""
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownImage:
    """An image of an output: its base64 and its first bytes are right, and it was not decoded yet."""

    mime: str
    """By its first bytes, whatever the notebook says."""
    data: bytes = field(repr=False)
    cell: int
    """The index of its cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownOutput:
    """One output, or what is said in its place."""

    kind: Literal["text", "error", "image", "other"]
    text: str = ""
    mime: str = ""
    size: int = 0
    """Of what is not shown as text: bytes of an image, characters of anything else."""
    image: int | None = None
    """Its number among the images of the answer, from 1."""
    truncated: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        data: dict[str, Any] = {"kind": self.kind}
        facts = {
            "text": self.text,
            "mime": self.mime,
            "size": self.size,
            "image": self.image,
            "truncated": self.truncated,
        }
        return data | {name: value for name, value in facts.items() if value}

    def text_for_model(self) -> str:
        """Show it in the place where it stands."""
        if self.kind == "image":
            return f"[image {self.image}: {self.mime}, {self.size:,} bytes]"
        return self.text if self.kind in ("text", "error") else f"[{self.text}]"


@dataclass(slots=True)
class Gallery:
    """The images of one answer."""

    most: int
    images: list[ShownImage] = field(default_factory=list[ShownImage])

    def offer(self, mime: str, encoded: str, cell: int) -> ShownOutput:
        """Take an image in, or say why not."""
        if len(self.images) >= self.most:
            return _other(mime, len(encoded), f"not shown: the answer has {self.most} images already")
        room = _MOST_IMAGE_BYTES - sum(len(one.data) for one in self.images)
        if len(encoded) * 3 // 4 > room:
            return _other(mime, len(encoded), "not shown: too large")
        try:
            data = base64.b64decode("".join(encoded.split()), validate=True)
        except (binascii.Error, ValueError):
            return _other(mime, len(encoded), "not shown: its base64 is broken")
        real = _real_kind(data)
        if real is None:
            return _other(mime, len(encoded), "not shown: it is no image")
        self.images.append(ShownImage(mime=real, data=data, cell=cell))
        return ShownOutput(kind="image", mime=real, size=len(data), image=len(self.images))


def shown_outputs(
    outputs: Any, gallery: Gallery, *, cell: int, room: int = OUTPUT_CHARACTERS
) -> tuple[ShownOutput, ...]:
    """Return the outputs of a cell in their order; together their text stays within the room."""
    listed = cast("list[Any]", outputs) if isinstance(outputs, list) else []
    shown = list[ShownOutput]()
    for number, output in enumerate(listed):
        if number >= _MOST_OUTPUTS or (room <= 0 and shown):
            left = len(listed) - number
            shown.append(ShownOutput(kind="other", text=f"{left} more outputs are not shown", truncated=True))
            break
        for one in _shown(output, gallery, cell=cell, room=max(room, 0)):
            room -= len(one.text)
            shown.append(one)
    return tuple(shown)


def plain(text: str) -> str:
    """Return what a terminal would show in the end: no codes, and of a line that was drawn over only the last."""
    text = _ANSI.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_drawn(row) for row in text.split("\n"))
    return safe_rows(text)


def _shown(output: Any, gallery: Gallery, *, cell: int, room: int) -> Sequence[ShownOutput]:
    facts = cast("dict[str, Any]", output) if isinstance(output, dict) else {}
    match facts.get("output_type"):
        case "stream":
            return [_text(_joined(facts.get("text")), room)]
        case "error":
            return [_text(_traceback(facts), room, kind="error")]
        case "display_data" | "execute_result" | "update_display_data":
            data = facts.get("data")
            bundle = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
            return _bundle(bundle, gallery, cell=cell, room=room)
        case _:
            return [ShownOutput(kind="other", text="an output of an unknown type")]


def _bundle(bundle: dict[str, Any], gallery: Gallery, *, cell: int, room: int) -> Sequence[ShownOutput]:
    """Show the image if there is one, else the text; say what else there is."""
    image = next((mime for mime in _IMAGES if mime in bundle), None)
    shown = [gallery.offer(image, _joined(bundle[image]), cell)] if image else []
    text = next((mime for mime in _TEXTS if mime in bundle), None)
    if text and not any(one.kind == "image" for one in shown):
        shown.append(_text(_joined(bundle[text]), room))
    others = [mime for mime in bundle if mime not in (image, *_TEXTS)]
    shown += [_other(mime, _length(bundle[mime]), "not shown") for mime in others[:_MOST_OTHERS]]
    if len(others) > _MOST_OTHERS:
        shown.append(
            ShownOutput(kind="other", text=f"{len(others) - _MOST_OTHERS} more types are not shown", truncated=True)
        )
    return shown


def _text(text: str, room: int, *, kind: Literal["text", "error"] = "text") -> ShownOutput:
    """Show a text; of one that is too long both ends, since errors stand at the end."""
    skipped = max(0, len(text) - 2 * _LOOKED_AT)
    ends = [text[:_LOOKED_AT], text[-_LOOKED_AT:]] if skipped else [text]
    ends = [plain(one) for one in ends]
    whole = sum(map(len, ends))
    if not skipped and whole <= room:
        return ShownOutput(kind=kind, text=ends[0].rstrip("\n"))
    half = room // 2
    cut = f"\n[… {whole + skipped - 2 * half:,} characters left out …]\n"
    return ShownOutput(
        kind=kind, text=ends[0][:half] + cut + ends[-1][len(ends[-1]) - half :].rstrip("\n"), truncated=True
    )


def _traceback(facts: dict[str, Any]) -> str:
    rows = facts.get("traceback")
    told = "\n".join(map(_joined, cast("list[Any]", rows))) if isinstance(rows, list) and rows else ""
    return told or f"{_joined(facts.get('ename'))}: {_joined(facts.get('evalue'))}"


def _other(mime: str, size: int, why: str) -> ShownOutput:
    """Stand in for what is not shown. The name of a type is somebody's text, so it is named only when it is one."""
    name = mime if _MIME.fullmatch(mime) else "a type with an improper name"
    return ShownOutput(kind="other", mime=name, size=size, text=f"{name}, {size:,} characters, {why}")


def _joined(value: Any) -> str:
    """Return a text that may be written as a list of lines."""
    if isinstance(value, list):
        return "".join(one for one in cast("list[Any]", value) if isinstance(one, str))
    return value if isinstance(value, str) else ""


def _length(value: Any) -> int:
    if isinstance(value, (str, list)):
        return len(_joined(cast("str | list[Any]", value)))
    try:
        return len(json.dumps(value))
    except RecursionError:  # it was read on the brink of what can be
        return 0


def _last_drawn(row: str) -> str:
    return next((part for part in reversed(row.split("\r")) if part), "")


def _real_kind(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), None)
