"""Hashes of files and lines. The only module that knows the algorithms.

A file is identified by its sha256. A line is identified by a 64-bit xxh3 of its content without trailing blanks;
leading blanks count, because indentation is part of a line's identity.
"""

import hashlib
from collections.abc import Iterable
from itertools import repeat

from surehold.text.encoding import Encoding

DIGEST_DIGITS = 16


def sha256_hex(data: bytes) -> str:
    """Return the name of some bytes."""
    return hashlib.sha256(data).hexdigest()


def line_digests(contents: list[bytes], encoding: Encoding) -> list[int]:
    """Return the digest of every line, in one pass over lines that have lost their terminators."""
    from xxhash import xxh3_64_intdigest

    return list(map(xxh3_64_intdigest, _without_trailing_blanks(contents, encoding)))


def digest_text(digest: int) -> str:
    """Spell a line digest as hexadecimal digits."""
    return f"{digest:016x}"


def _without_trailing_blanks(contents: list[bytes], encoding: Encoding) -> Iterable[bytes]:
    if encoding.width == 1:
        return map(bytes.rstrip, contents, repeat(b" \t"))
    return (
        line.decode(encoding.name, "surrogatepass").rstrip(" \t").encode(encoding.name, "surrogatepass")
        for line in contents
    )
