"""The `charset` that the bytes of an .editorconfig declare for a file; nothing else in it is of interest here.

A section's glob is matched without backtracking: all places of the name that it can have reached are the bits of one
number, which every sign of the glob moves on. That takes one pass over the glob, whatever is in it.
"""

_MAX_SECTION_CHARS = 1024
"""A longer section names nothing."""
_CODEC_OF_CHARSET = {
    "latin1": "latin-1",
    "utf-8": "utf-8",
    "utf-8-bom": "utf-8-sig",
    "utf-16be": "utf-16-be",
    "utf-16le": "utf-16-le",
}


def read_charset(config: bytes, name: str) -> tuple[bool, str | None]:
    """Return whether this is the topmost file, and the codec that it declares for a name below it.

    An empty codec is one that we do not know: no file above this one is asked for another.
    """
    is_root, charset = _parse_config(config.decode("utf-8", "replace"), name)
    return is_root, charset and _CODEC_OF_CHARSET.get(charset, "")


def _parse_config(text: str, name: str) -> tuple[bool, str | None]:
    """Return whether this is the topmost file, and the last charset of a section that names the file."""
    is_root, charset, section, places = False, None, None, _NamePositions(name)
    for line in text.splitlines():
        row = line.strip()  # a comment is a row with a key that means nothing
        if row.startswith("[") and row.endswith("]"):
            section = row[1:-1]
            continue
        key, _, value = (part.strip().lower() for part in row.partition("="))
        if section is None and key == "root":
            is_root = value == "true"
        elif section is not None and key == "charset" and _section_matches(section, places):
            charset = None if value == "unset" else value
    return is_root, charset


class _NamePositions:
    """Sets of places in a name, each as the bits of a number: bit i is the place before character i."""

    def __init__(self, name: str) -> None:
        self._of: dict[str, int] = {}
        for at, sign in enumerate(name):
            self._of[sign] = self._of.get(sign, 0) | 1 << at
        self.end = 1 << len(name)
        self._slash = self._of.get("/", 0)
        self._inside = self.end - 1 & ~self._slash

    def after_character(self, sign: str, reached: int) -> int:
        return (reached & self._of.get(sign, 0)) << 1

    def after_one(self, reached: int) -> int:
        """Go over any character but a slash."""
        return (reached & self._inside) << 1

    def after_class(self, inner: str, reached: int) -> int:
        """Go over one character that is listed, or with `!` one that is not."""
        listed, at, wanted = 0, 0, inner.removeprefix("!")
        while at < len(wanted):
            if wanted[at + 1 : at + 2] == "-" and at + 2 < len(wanted):
                first, last = wanted[at], wanted[at + 2]
                for sign, places in self._of.items():
                    listed |= places if first <= sign <= last else 0
                at += 3
            else:
                listed |= self._of.get(wanted[at], 0)
                at += 1
        return (reached & self._inside & (~listed if wanted != inner else listed)) << 1

    def after_run(self, reached: int) -> int:
        """Go over any characters up to a slash: a carry runs through every stretch of ones that is entered."""
        return ((reached & self._inside) + self._inside ^ self._inside) | reached

    def after_anything(self, reached: int) -> int:
        """Go over any characters: from the first place on, all are reached."""
        return (self.end << 1) - (reached & -reached) if reached else 0

    def after_directories(self, reached: int) -> int:
        return reached | (self.after_anything(reached) & self._slash) << 1


def _section_matches(section: str, places: _NamePositions) -> bool:
    if len(section) > _MAX_SECTION_CHARS:
        return False
    glob = section.lstrip("/") if "/" in section else f"**/{section}"
    reached, at, braces = 1, 0, list[tuple[int, int]]()  # of each open brace: where it began, what it has reached
    while at < len(glob):
        sign, width = glob[at], 1
        if sign == "{" and "," in glob[at : glob.find("}", at) + 1]:
            braces.append((reached, 0))
        elif sign == "," and braces:
            began, others = braces.pop()
            braces.append((began, others | reached))
            reached = began
        elif sign == "}" and braces:
            reached |= braces.pop()[1]
        else:
            reached, width = _step_over(glob, at, places, reached)
        at += width
    return not braces and reached & places.end != 0


def _step_over(glob: str, at: int, places: _NamePositions, reached: int) -> tuple[int, int]:
    """Return what the sign at this place of the glob reaches, and how long it is."""
    if glob.startswith("**/", at):
        return places.after_directories(reached), 3
    if glob.startswith("**", at):
        return places.after_anything(reached), 2
    if glob[at] == "*":
        return places.after_run(reached), 1
    if glob[at] == "?":
        return places.after_one(reached), 1
    if glob[at] == "[" and (close := glob.find("]", at)) > 0:
        return places.after_class(glob[at + 1 : close], reached), close + 1 - at
    return places.after_character(glob[at], reached), 1
