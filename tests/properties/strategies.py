"""Files as people have them: every line ending, byte order mark and encoding, with and without damage."""

from dataclasses import dataclass

from hypothesis import strategies as st

from surehold.text.encoding import Encoding, encoding_named

ENCODINGS = (
    "utf-8",
    "ascii",
    "latin-1",
    "cp1252",
    "koi8-r",
    "gbk",
    "shift_jis",
    "big5",
    "euc-kr",
    "utf-16-le",
    "utf-16-be",
    "utf-32-le",
)
BOMS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff", "utf-32-le": b"\xff\xfe\0\0"}
LETTERS = {
    "ascii": "ab {}\t",
    "latin-1": "ab é\u00a0\u0085",
    "cp1252": "ab é€“",
    "koi8-r": "ab жя",
    "gbk": "ab中文\\你",
    "shift_jis": "ab表ソ\\日",
    "big5": "ab功許\\中",
    "euc-kr": "ab한글",
}
UNICODE = "ab é中\u2028\u0085\x0b\x0c😀“"
TERMINATORS = {"lf": ["\n"], "crlf": ["\r\n"], "cr": ["\r"], "mixed": ["\n", "\r\n"], "stray": ["\n", "\r\n", "\r"]}


@dataclass(frozen=True)
class Sample:
    """One file, with what its maker knows about it."""

    data: bytes
    encoding: Encoding
    rows: tuple[str, ...]
    terminators: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(map("".join, zip(self.rows, self.terminators, strict=True)))


@st.composite
def samples(
    draw: st.DrawFn, encodings: tuple[str, ...] = ENCODINGS, *, styles: tuple[str, ...] = ("lf", "crlf", "cr", "mixed")
) -> Sample:
    """Draw a file whose lines, endings and encoding are known."""
    name = draw(st.sampled_from(encodings))
    letters = LETTERS.get(name, UNICODE)
    style = draw(st.sampled_from(styles))
    rows = draw(st.lists(st.text(letters, max_size=6), max_size=8))
    ends = [draw(st.sampled_from(TERMINATORS[style])) for _ in rows]
    if rows and rows[-1] and draw(st.booleans()):
        ends[-1] = ""
    bom = BOMS[name] if name in BOMS and draw(st.booleans()) else b""
    text = "".join(map("".join, zip(rows, ends, strict=True)))
    encoding = Encoding(name=encoding_named(name).name, bom=bom, width=encoding_named(name).width)
    return Sample(bom + text.encode(name), encoding, tuple(rows), tuple(ends))


def any_bytes() -> st.SearchStrategy[bytes]:
    """Draw bytes that fit nothing, with line endings in them."""
    pieces = st.sampled_from(
        [b"a", b" ", b"\n", b"\r\n", b"\r", b"\xff", b"\xe4\xb8", b"\xc3\xa9", b"\x80", b"end", b"\t"]
    )
    return st.lists(pieces, max_size=30).map(b"".join)
