"""Converts an image to one that every host can display. Runs in the decoding process only.

1. The size is read from the header first: an image that is too large is not decoded at all.
2. An image that is passed on unchanged was decoded completely before.
3. The orientation of a camera is applied; of several frames the first is shown.
"""

import importlib
from contextlib import suppress
from io import BytesIO
from typing import Any

from PIL import Image, ImageFile, PngImagePlugin

from surehold.media.child import DecodeRefusal, Json, Piece

MAX_STORED_PIXELS = 300_000_000
"""Pixels of the image as it is stored."""
_MAX_DECODED_PIXELS = 128_000_000
"""Pixels of the image as it is decoded: only JPEG can be decoded to a fraction of its size."""
MAX_SIDE_PIXELS = 2000
"""Pixels along the longer side that every host accepts."""
_SHRUNK_SIDE_PIXELS = 1568
"""What a longer side becomes: models see no more of it."""
_MAX_IMAGE_BYTES = 3_932_160
_MAX_PNG_BYTES = 500_000
"""A lossless image above this becomes a JPEG."""
_MAX_METADATA_BYTES = 1 << 20
"""Bytes of a text or profile in an image that other decoders accept."""
_PASSED_ON_FORMATS = frozenset({"PNG", "JPEG", "GIF", "WEBP"})
_PASSED_ON_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA"})
_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_FIRST_SIDEWAYS_ORIENTATION = 5
"""From this orientation on, width and height change places."""

Image.MAX_IMAGE_PIXELS = None  # we check the size ourselves, before anything is decoded
ImageFile.LOAD_TRUNCATED_IMAGES = False
PngImagePlugin.MAX_TEXT_CHUNK = 16 << 20  # drawings carry their sources in such texts, and cameras large profiles


def render_picture(data: bytes, request: Json) -> Piece:
    """Return an image to show and its facts; with `preview`, its colours in that many columns and at most `rows` rows."""
    image = _open_image(data, str(request["format"]))
    width, height = image.size
    if width * height > (MAX_STORED_PIXELS if image.format == "JPEG" else _MAX_DECODED_PIXELS):
        raise DecodeRefusal("too_large", f"it has {width} x {height} pixels")
    turn = 1 if image.format == "TIFF" else _read_orientation(image)  # TIFF images are turned while they are decoded
    frames = int(getattr(image, "n_frames", 1))
    upright = (height, width) if turn >= _FIRST_SIDEWAYS_ORIENTATION else (width, height)
    facts = {"frames": frames, "orientation": _read_orientation(image), "mode": image.mode, "original": upright}
    if columns := int(request.get("preview", 0)):
        rows = max(min(round(columns * upright[1] / upright[0] / 2), int(request["rows"]) // 2) * 2, 2)
        shown = _turn_upright(_decode_image(image, max(columns, rows)), turn).convert("RGB")
        return {**facts, "display": (columns, rows)}, _resize_image(shown, (columns, rows)).tobytes()
    if _can_stay(image, data, turn=turn, frames=frames) and _is_sound(image, data):
        return {**facts, "display": upright, "mime": Image.MIME[str(image.format)]}, data
    edge = max(width, height) if max(width, height) <= MAX_SIDE_PIXELS else _SHRUNK_SIDE_PIXELS
    shown = _turn_upright(_shrink_image(_decode_image(image, edge), edge), turn)
    body, mime = _encode_image(shown, density=len(data) / max(width * height, 1), lossy=image.format == "JPEG")
    with Image.open(BytesIO(body)) as proof:
        proof.load()
    return {**facts, "display": shown.size, "mime": mime}, body


def _open_image(data: bytes, name: str) -> Image.Image:
    if name == "HEIC":
        with suppress(ImportError):
            importlib.import_module("pillow_heif").register_heif_opener()
        if "HEIF" not in Image.OPEN:
            cause = "HEIC images cannot be decoded here; the package pillow-heif is not installed"
            raise DecodeRefusal("unsupported", cause)
        name = "HEIF"
    try:
        return Image.open(BytesIO(data), formats=(name,))
    except Image.UnidentifiedImageError:
        raise DecodeRefusal("invalid", f"only the first bytes are those of a {name}") from None


def _read_orientation(image: Image.Image) -> int:
    found = image.getexif().get(_ORIENTATION, 1)
    return found if found in _TURNS else 1


def _can_stay(image: Image.Image, data: bytes, *, turn: int, frames: int) -> bool:
    plain = image.format in _PASSED_ON_FORMATS and image.mode in _PASSED_ON_MODES and turn == 1 and frames == 1
    return plain and max(image.size) <= MAX_SIDE_PIXELS and len(data) <= _MAX_IMAGE_BYTES


def _is_sound(image: Image.Image, data: bytes) -> bool:
    """Tell whether stricter decoders accept it too: Pillow ignores wrong checksums and a missing end of a PNG."""
    image.load()
    facts: list[Any] = list(image.info.values())
    if any(isinstance(fact, (str, bytes)) and len(fact) > _MAX_METADATA_BYTES for fact in facts):
        return False
    try:
        with Image.open(BytesIO(data), formats=(str(image.format),)) as again:
            again.verify()
    except Exception:  # noqa: BLE001 - whatever is wrong, it can be decoded and encoded again
        return False
    return True


def _decode_image(image: Image.Image, edge: int) -> Image.Image:
    """Decode to 8 bits per colour, at a fraction of the size if the format allows it."""
    image.draft(None, (edge, edge))
    if image.width * image.height > _MAX_DECODED_PIXELS:
        raise DecodeRefusal("too_large", f"it has {image.width} x {image.height} pixels")
    image.load()
    if image.mode.startswith("I") or image.mode == "F":
        return _reduce_depth(image)
    if image.mode in {"P", "PA", "LA", "La", "RGBa"}:
        has_alpha = image.mode != "P" or "transparency" in image.info
        return image.convert("RGBA" if has_alpha else "RGB")
    if image.mode == "1":
        return image.convert("L")
    return image if image.mode in {"L", "RGB", "RGBA"} else image.convert("RGB")


def _reduce_depth(image: Image.Image) -> Image.Image:
    """Reduce deep greys to 8 bits; a plain conversion would clip everything bright."""
    extrema: Any = image.getextrema()
    low, high = map(float, extrema)
    top = 65535.0 if image.mode.startswith("I;16") or (low >= 0 and 255 < high <= 65535) else max(high, 1.0)  # noqa: PLR2004 - what 8 and 16 bits hold
    deep: Any = image.convert("F")

    def scaled(value: Any) -> Any:  # Pillow accepts only a factor for deep greys
        return value * (255.0 / top)

    return deep.point(scaled).convert("L")


def _shrink_image(image: Image.Image, edge: int) -> Image.Image:
    longest = max(image.size)
    if longest <= edge:
        return image
    size = (max(round(image.width * edge / longest), 1), max(round(image.height * edge / longest), 1))
    return _resize_image(image, size)


def _resize_image(image: Any, size: tuple[int, int]) -> Image.Image:
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _turn_upright(image: Image.Image, turn: int) -> Image.Image:
    return image.transpose(_TURNS[turn]) if turn in _TURNS else image


def _encode_image(image: Image.Image, *, density: float, lossy: bool) -> tuple[bytes, str]:
    """Return a PNG if it is small, else a JPEG on white; `density` is the number of bytes per pixel of the original."""
    if not lossy and density * image.width * image.height <= _MAX_PNG_BYTES:
        body = _save_image(image, "PNG", optimize=False)
        if len(body) <= _MAX_PNG_BYTES:
            return body, "image/png"
    if image.mode == "RGBA":
        ground = Image.new("RGB", image.size, "white")
        ground.paste(image, mask=image.getchannel("A"))
        image = ground
    return save_small_jpeg(image, (85, 70, 50), most=_MAX_IMAGE_BYTES), "image/jpeg"


def save_small_jpeg(image: Image.Image, qualities: tuple[int, ...], *, most: int) -> bytes:
    """Return a JPEG in the first quality that needs at most so many bytes, else in the last one."""
    body = b""
    for quality in qualities:
        body = _save_image(image, "JPEG", quality=quality)
        if len(body) <= most:
            break
    return body


def _save_image(image: Image.Image, name: str, **options: Any) -> bytes:
    drain = BytesIO()
    image.save(drain, name, **options)
    return drain.getvalue()
