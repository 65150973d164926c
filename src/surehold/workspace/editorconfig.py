"""The `charset` that an .editorconfig declares for a file.

Read through the disk like everything else, from the file's directory up to its root, the nearest file winning, until one
says `root = true`. Only the charset is of interest here.
"""

import re
from dataclasses import replace

from surehold.disk.base import Reader, Target
from surehold.errors import SureholdError

_MAX_BYTES = 1 << 20
_CODECS = {
    "latin1": "latin-1",
    "utf-8": "utf-8",
    "utf-8-bom": "utf-8",
    "utf-16be": "utf-16-be",
    "utf-16le": "utf-16-le",
}


def charset_of(disk: Reader, target: Target) -> str | None:
    """Return the codec that is declared for this file, or None."""
    for depth in range(len(target.parts) - 1, -1, -1):
        config = replace(target, parts=(*target.parts[:depth], ".editorconfig"))
        try:
            stored = disk.read(config, limit=_MAX_BYTES)
        except SureholdError:  # a directory of that name, no permission: as if it were not there
            continue
        if stored is None:
            continue
        is_root, charset = _parse(stored.data.decode("utf-8", "replace"), "/".join(target.parts[depth:]))
        if charset is not None:
            return _CODECS.get(charset)
        if is_root:
            break
    return None


def _parse(text: str, name: str) -> tuple[bool, str | None]:
    """Return whether this is the topmost file, and the last charset of a section that names the file."""
    is_root, charset, applies, preamble = False, None, False, True
    for line in text.splitlines():
        row = line.strip()
        if not row or row[0] in "#;":
            continue
        if row.startswith("[") and row.endswith("]"):
            preamble, applies = False, _matches(row[1:-1], name)
            continue
        key, _, value = (part.strip().lower() for part in row.partition("="))
        if preamble and key == "root":
            is_root = value == "true"
        elif applies and key == "charset":
            charset = None if value == "unset" else value
    return is_root, charset


def _matches(glob: str, name: str) -> bool:
    pattern = glob.lstrip("/") if "/" in glob else f"**/{glob}"
    try:
        return re.fullmatch(_regex(pattern), name) is not None
    except re.error:  # a malformed section names nothing
        return False


def _regex(glob: str) -> str:
    out, depth, at = list[str](), 0, 0
    while at < len(glob):
        sign = glob[at]
        if glob.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
            continue
        if glob.startswith("**", at):
            out.append(".*")
            at += 2
            continue
        if sign == "{" and "}" in glob[at:] and "," in glob[at : glob.index("}", at)]:
            out.append("(?:")
            depth += 1
        elif sign == "}" and depth:
            out.append(")")
            depth -= 1
        elif sign == "," and depth:
            out.append("|")
        elif sign == "[" and "]" in glob[at:]:
            end = glob.index("]", at)
            inner = glob[at + 1 : end].replace("\\", r"\\")
            out.append(f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]")
            at = end
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)))
        at += 1
    return "".join(out)
