"""Images and documents through the decoding process, against the same libraries without it."""

import io
import math

import pypdfium2
from PIL import Image
from table import Row
from timing import interleave

from surehold.media.documents import decode_document
from surehold.media.magic import kind_of
from surehold.media.pictures import decode_picture

_REPEAT = 9
_EDGE = 1568
_PAGES = 20
_LONG, _LONG_BYTES = 2_000, 90_000_000


def rows(repeat: int = _REPEAT) -> list[Row]:
    photo, pages = _photo(), tuple(range(1, _PAGES + 1))
    kind = kind_of(photo)
    assert kind is not None
    image = interleave(lambda _: _pillow(photo), lambda _: decode_picture(photo, kind, path="photo.jpg"), repeat=repeat)
    paper = _document(_PAGES, 40)
    drawn = interleave(
        lambda _: _pdfium(paper, pages),
        lambda _: decode_document(paper, lambda _: pages, path="paper.pdf"),
        repeat=repeat,
    )
    long = _document(_LONG, 40, padding=_LONG_BYTES // _LONG)
    some = tuple(range(_LONG - _PAGES + 1, _LONG + 1))
    deep = interleave(
        lambda _: _pdfium(long, some),
        lambda _: decode_document(long, lambda _: some, path="long.pdf"),
        repeat=max(repeat // 3, 1),
    )
    return [
        Row(name="an image of 12 megapixels", measured=image.ratio, goal=1.3, note=f"of Pillow alone: {image.note}"),
        Row(
            name=f"{_PAGES} pages of a document",
            measured=drawn.ratio,
            goal=1.3,
            note=f"of pypdfium2 alone: {drawn.note}",
        ),
        Row(
            name=f"the last {_PAGES} of {_LONG:,} pages, {len(long) / 1e6:.0f} MB",
            measured=deep.ratio,
            note=f"of pypdfium2 alone: {deep.note}",
        ),
    ]


def _pillow(data: bytes) -> None:
    image = Image.open(io.BytesIO(data))
    image.draft("RGB", (_EDGE, _EDGE))
    small = image.resize((_EDGE, _EDGE * 3 // 4), Image.Resampling.LANCZOS, reducing_gap=2.0)
    small.save(io.BytesIO(), "JPEG", quality=85)


def _pdfium(data: bytes, pages: tuple[int, ...]) -> None:
    pdf = pypdfium2.PdfDocument(data)
    for number in pages:
        page = pdf[number - 1]
        page.get_textpage().get_text_bounded()
        bitmap = page.render(scale=(_EDGE - 1) / max(page.get_size()), rev_byteorder=True)
        bitmap.to_pil().save(io.BytesIO(), "JPEG", quality=80)
    pdf.close()


def _photo() -> bytes:
    """An image with large and small features, as a camera makes them."""
    grain = Image.effect_noise((4000, 3000), 25).convert("RGB")
    sky = Image.linear_gradient("L").resize((4000, 3000)).convert("RGB")
    drain = io.BytesIO()
    Image.blend(sky, grain, 0.3).save(drain, "JPEG", quality=90)
    return drain.getvalue()


def _document(pages: int, lines: int, *, padding: int = 0) -> bytes:
    """Pages full of text and curves; `padding` are bytes in each that are only there."""
    bodies: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    leaves = list[int]()
    for number in range(pages):
        rows = b" ".join(
            b"(page %d row %d of many words that fill a line) Tj T*" % (number, row) for row in range(lines)
        )
        curve = b" ".join(b"%d %d l" % (x, 60 + 50 * math.sin(x / 9 + number)) for x in range(50, 560, 2))
        stream = b"BT /F1 12 Tf 50 740 Td 14 TL %s ET 50 60 m %s S\n%%" % (rows, curve) + b"x" * padding
        bodies.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        bodies.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(bodies)
        )
        leaves.append(len(bodies))
    bodies[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    bodies[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(b"%d 0 R" % leaf for leaf in leaves), pages)
    out, offsets = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(bodies, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(bodies) + 1, table)
    return bytes(out)
