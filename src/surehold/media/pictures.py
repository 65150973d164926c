"""Converts an image file to a picture that fits, and that is known to decode."""

from dataclasses import dataclass
from importlib.util import find_spec

from surehold.errors import ImageInvalid, ImageTooLarge, missing_extra
from surehold.media.child import DecodeRefusal, Json, Piece
from surehold.media.magic import HEAD_BYTES, FileKind, kind_of
from surehold.media.workers import WORKERS, DecodeDeadline, DecoderGone, DecoderSlow, WorkerPool

DISPLAYABLE_MIMES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The image types that every host can show."""
MAX_IMAGE_FILE_BYTES = 64 << 20
"""Larger image files are not decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureSize:
    """Width and height in pixels, as the picture is meant to be seen."""

    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    data: bytes
    mime: str
    original: PictureSize
    display: PictureSize
    frames: int
    """The number of frames; only the first is shown."""
    orientation: int
    """The EXIF orientation, which was applied; 1 is upright."""
    mode: str
    """The colour mode by Pillow's name."""


def decode_picture(
    data: bytes, kind: FileKind, *, path: str, patience: DecodeDeadline | None = None, workers: WorkerPool = WORKERS
) -> Picture:
    """Return an image that a host can show, or raise `ImageInvalid` or `ImageTooLarge`."""
    head, body = _ask_worker({}, data, kind, path=path, patience=patience, workers=workers)
    shown = kind_of(body[:HEAD_BYTES])
    if shown is None or shown.mime != head["mime"] or shown.mime not in DISPLAYABLE_MIMES:
        raise _invalid_image(path, kind, "the decoder did not return an image", "crashed")
    return Picture(
        data=body,
        mime=shown.mime,
        original=_parse_size(head["original"]),
        display=_parse_size(head["display"]),
        frames=int(head["frames"]),
        orientation=int(head["orientation"]),
        mode=str(head["mode"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturePreview:
    """The colours of an image in a small grid: three bytes each, row by row."""

    columns: int
    rows: int
    colours: bytes


def decode_preview(data: bytes, kind: FileKind, *, path: str, columns: int, rows: int = 96) -> PicturePreview:
    """Return an image so small that a terminal can show it, in at most `rows` rows."""
    head, body = _ask_worker({"preview": columns, "rows": rows}, data, kind, path=path, patience=None, workers=WORKERS)
    return PicturePreview(columns=head["display"][0], rows=head["display"][1], colours=body)


def _ask_worker(
    options: Json, data: bytes, kind: FileKind, *, path: str, patience: DecodeDeadline | None, workers: WorkerPool
) -> Piece:
    if find_spec("PIL") is None:
        raise missing_extra(f"`{path}` cannot be shown", "media")
    if len(data) > MAX_IMAGE_FILE_BYTES:
        raise _image_too_large(path, kind, f"it has {len(data)} bytes, more than {MAX_IMAGE_FILE_BYTES}")
    try:
        with workers.lend_worker(patience) as worker:
            (answer,) = worker.ask({"do": "picture", "format": kind.name, **options}, data, patience=patience)
            return answer
    except DecodeRefusal as refused:
        if refused.error == "too_large":
            raise _image_too_large(path, kind, refused.cause) from None
        reason = "unsupported" if refused.error == "unsupported" else None
        raise _invalid_image(path, kind, refused.cause, reason) from None
    except DecoderGone:
        raise _invalid_image(path, kind, "the decoder crashed, or needed too much time or memory", "crashed") from None
    except DecoderSlow:
        raise _image_too_large(path, kind, "decoding took too long", "timeout") from None


def _parse_size(pair: list[int]) -> PictureSize:
    return PictureSize(width=pair[0], height=pair[1])


def _invalid_image(path: str, kind: FileKind, cause: str, reason: str | None) -> ImageInvalid:
    message = f"`{path}` begins like a {kind.name} image but cannot be decoded."
    action = "Convert it to PNG or JPEG, and read that." if reason == "unsupported" else None
    return ImageInvalid(message, path=path, reason=reason, action=action, cause=cause)


def _image_too_large(path: str, kind: FileKind, cause: str, reason: str | None = None) -> ImageTooLarge:
    return ImageTooLarge(f"The {kind.name} image `{path}` is too large.", path=path, reason=reason, cause=cause)
