"""Images and documents to test with, made when they are needed."""

import io
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo


def image(
    name: str = "PNG", size: tuple[int, int] = (40, 30), colour: Any = "red", *, mode: str = "RGB", **options: Any
) -> bytes:
    """Return an image of one colour."""
    return encoded(Image.new(mode, size, colour), name, **options)


def encoded(picture: Image.Image, name: str, **options: Any) -> bytes:
    drain = io.BytesIO()
    picture.save(drain, name, **options)
    return drain.getvalue()


def noise(size: tuple[int, int]) -> Image.Image:
    """Return an image that cannot be packed well."""
    return Image.effect_noise(size, 60).convert("RGB")


def decoded(data: bytes) -> Image.Image:
    """Return an image that was decoded completely."""
    picture = Image.open(io.BytesIO(data))
    picture.load()
    return picture


def turned(orientation: int, name: str = "JPEG", size: tuple[int, int] = (40, 30)) -> bytes:
    """Return an image whose left half is black, and which says how the camera was held."""
    picture = Image.new("RGB", size, "white")
    picture.paste("black", (0, 0, size[0] // 2, size[1]))
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(picture, name, exif=exif)


def described(name: str, length: int) -> PngInfo:
    """Return a text for a PNG, packed when the name is `zTXt`."""
    info = PngInfo()
    info.add_text("Comment", "x" * length, zip=name == "zTXt")
    return info


def bomb(side: int) -> bytes:
    """Return a small PNG that would be a very large image: the same packed rows again and again."""
    packer = zlib.compressobj(9, wbits=-15)
    part = packer.compress(bytes((1 + side) * 100)) + packer.flush(zlib.Z_FULL_FLUSH)
    size = (1 + side) * side
    checksum = struct.pack(">I", (size % 65521) << 16 | 1)  # of zeros
    rows = b"\x78\xda" + part * (side // 100) + packer.flush() + checksum
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def pdf(
    pages: Sequence[str],
    *,
    size: tuple[int, int] = (612, 792),
    outline: Sequence[tuple[str, int]] = (),
    password: bool = False,
) -> bytes:
    """Return a document with one text on each page."""
    bodies: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    leaves = list[int]()
    for text in pages:
        rows = b" ".join(b"(%s) Tj T*" % _literal(row) for row in text.split("\n"))
        stream = b"BT /F1 12 Tf 20 %d Td 14 TL %s ET" % (size[1] - 40, rows)
        bodies.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        box = b"/MediaBox [0 0 %d %d] /Contents %d 0 R" % (*size, len(bodies))
        bodies.append(b"<< /Type /Page /Parent 2 0 R %s /Resources << /Font << /F1 3 0 R >> >> >>" % box)
        leaves.append(len(bodies))
    marks = b""
    if outline:
        root = len(bodies) + 1
        marks = b" /Outlines %d 0 R" % root
        bodies.append(b"<< /First %d 0 R /Last %d 0 R /Count %d >>" % (root + 1, root + len(outline), len(outline)))
        for number, (title, page) in enumerate(outline, root + 1):
            around = b" /Prev %d 0 R" % (number - 1) if number > root + 1 else b""
            around += b" /Next %d 0 R" % (number + 1) if number < root + len(outline) else b""
            goal = b"/Dest [%d 0 R /Fit]" % leaves[page - 1]
            bodies.append(b"<< /Title (%s) /Parent %d 0 R %s%s >>" % (_literal(title), root, goal, around))
    bodies[0] = b"<< /Type /Catalog /Pages 2 0 R%s >>" % marks
    kids = b" ".join(b"%d 0 R" % leaf for leaf in leaves)
    bodies[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(leaves))
    locked = b""
    if password:
        secrets = b"<%s>" % (b"5a" * 32), b"<%s>" % (b"a5" * 32)
        bodies.append(b"<< /Filter /Standard /V 1 /R 2 /P -4 /O %s /U %s >>" % secrets)
        locked = b" /Encrypt %d 0 R /ID [<00112233> <00112233>]" % len(bodies)
    return _assembled(bodies, locked)


def pdf_of_stream(stream: bytes) -> bytes:
    """Return a document whose page is drawn by a packed stream."""
    packed = zlib.compress(stream)
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>"
    body = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)
    kids = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
    return _assembled([b"<< /Type /Catalog /Pages 2 0 R >>", kids, page, body], b"")


def _literal(text: str) -> bytes:
    return text.encode("latin-1").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _assembled(bodies: Sequence[bytes], locked: bytes) -> bytes:
    out, offsets = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(bodies, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (len(bodies) + 1, locked, table)
    return bytes(out)
