"""What the scripted model does with our tools, and whether what reached it was right."""

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from conformance.hosts.model import Call, Script, Shown
from conformance.lifecycle import NAME, sha256_in

OUTSIDE = "alpha\nBETA\ngamma\nan outside line\n"
AFTER = "alpha\nBETA\nGAMMA\nan anchored line\n"
CALLS = (
    "`read_file`",
    "`edit_file`",
    "`edit_file`, stale",
    "`edit_file`, retried",
    "`read_file`, with hashes",
    "`edit`, by anchor",
)
"""The calls of the life of an edit, in the order in which they are made."""

LONG_FILES = {
    "ascii.txt": [f"{n:05d} the quick brown fox jumps over {n * 7} dogs" for n in range(1, 4001)],
    "cjk.txt": [f"{n:05d} 敏捷的棕色狐狸跳過了那隻懶狗，第{n}次；日本語と한국어" for n in range(1, 1201)],
    "short.txt": [f"{n:05d}" for n in range(1, 4501)],
    "wide.txt": [f"{n:05d} {'the quick brown fox jumps over the lazy dog ' * 68}{n:05d}" for n in range(1, 31)],
    "emoji.txt": [f"{n:05d} 🦊🐕 👩‍👩‍👧‍👦 🇯🇵🏴‍☠️ 👍🏽 {'🎉' * (n % 17)}" for n in range(1, 1201)],
}
"""Files of several pages, as lines; each line is there once, so that a missing one can be named."""


def live(path: Path) -> Script:
    """Read, edit, be refused after an outside change, retry with what the refusal said, and edit by an anchor."""

    def edit(sha256: str, old: str, new: str) -> Call:
        edits = [{"oldText": old, "newText": new}]
        return Call(tool="edit_file", arguments={"path": NAME, "expectedSha256": sha256, "edits": edits})

    read = yield Call(tool="read_file", arguments={"path": NAME})
    edited = yield edit(sha256_in(read.text), "beta", "BETA")
    path.write_text(OUTSIDE, encoding="utf-8")
    refused = yield edit(_after(edited.text), "gamma", "GAMMA")
    yield edit(_named(refused.text, "retryWithSha256"), "gamma", "GAMMA")
    rows = yield Call(tool="read_file", arguments={"path": NAME, "hashes": True})
    line = {"op": "replace_line", "hash": _anchor(rows.text, "an outside line"), "content": "an anchored line"}
    yield Call(tool="edit", arguments={"path": NAME, "operations": [line]})
    return "done"


def read_whole(names: Iterable[str]) -> Script:
    """Read files page by page, each as far as the pages say how it goes on."""
    for name in names:
        start: int | None = 1
        while start is not None:
            shown = yield Call(tool="read_file", arguments={"path": name, "startLine": start})
            following = _next_line(shown.text)
            start = following if following and following > start else None
    return "done"


def judge_life(shown: list[Shown], disk: str) -> dict[str, bool]:
    """Say what holds of the life of an edit, by what the model was shown and what the file became."""
    text = [one.text for one in shown] + [""] * len(CALLS)
    return {
        "read_file: the model sees the lines as they are, and the sha256": "alpha" in text[0]
        and "beta" in text[0]
        and bool(sha256_in(text[0])),
        "edit_file: the model sees that it worked, the diff, and the next sha256": bool(_after(text[1]))
        and "+BETA" in text[1]
        and "Nothing was written" not in text[1],
        "stale: the model reads that nothing was written, the kind, and both hashes": _is_refusal(text[2])
        and "stale_file" in text[2]
        and len(set(re.findall(r"\b[0-9a-f]{64}\b", text[2]))) >= 2,
        "stale: what the refusal says is enough for a retry that works": "+GAMMA" in text[3] and "GAMMA" in disk,
        "anchors: the hash that the model sees is enough for an edit": disk == AFTER,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How much of a file reached the model, page by page."""

    name: str
    pages: int
    characters: int
    """Of the largest page, as the model is given it."""
    size: int
    """The same in UTF-8 bytes."""
    missing: list[int]
    """The numbers of the lines that did not arrive whole."""
    in_order: bool
    """What arrived, joined, is the file without the missing lines."""

    @property
    def whole(self) -> bool:
        return not self.missing and self.in_order

    def __str__(self) -> str:
        lost = f"; missing: {spans(self.missing)}" if self.missing else "" if self.in_order else "; out of order"
        return f"{self.pages} pages of at most {self.characters:,} characters, {self.size:,} bytes{lost}"


def arrival(name: str, lines: list[str], shown: list[Shown]) -> Arrival:
    """Compare what the model was shown of a file with its lines."""
    texts = [one.text for one in shown if one.call.arguments.get("path") == name]
    known = dict(zip(lines, range(1, len(lines) + 1), strict=True))
    arrived = [known[line] for text in texts for line in _lines_in(text, known) if line in known]
    return Arrival(
        name=name,
        pages=len(texts),
        characters=max(map(len, texts), default=0),
        size=max((len(text.encode()) for text in texts), default=0),
        missing=sorted(set(known.values()) - set(arrived)),
        in_order=arrived == sorted(set(arrived)),
    )


def spans(numbers: list[int]) -> str:
    """Return line numbers as ranges, the first few of them."""
    runs = list[list[int]]()
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    named = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs[:6])
    return named + (f" and {len(runs) - 6} more ranges" if len(runs) > 6 else "")


def _lines_in(text: str, known: dict[str, int]) -> list[str]:
    """Return the lines of a page, out of whatever the host put it in: the reading that has the most of them."""
    readings = [reading.splitlines() for reading in (text, *_strings(text))]
    return max(readings, key=lambda lines: sum(line in known for line in lines))


def _strings(text: str) -> Iterable[str]:
    """Yield the strings inside JSON, and inside what Python prints of an object."""
    try:
        yield from _inner(json.loads(text))
    except ValueError:
        for quoted in re.findall(r"""text=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", text):
            yield str(ast.literal_eval(quoted))


def _inner(value: Any) -> Iterable[str]:
    match value:
        case str():
            yield value
            if value.startswith(("{", "[")):
                yield from _strings(value)
        case dict():
            for one in cast("dict[str, Any]", value).values():
                yield from _inner(one)
        case list():
            for one in cast("list[Any]", value):
                yield from _inner(one)
        case _:
            pass


def _is_refusal(text: str) -> bool:
    """Whether a text says that nothing was written: in words, or as the structured content does."""
    return "Nothing was written." in text or bool(re.search(r'"ok\\*": ?false', text))


def _next_line(text: str) -> int | None:
    found = re.search(r"goes on: startLine=(\d+)", text)
    return int(found.group(1)) if found else None


def _anchor(text: str, line: str) -> str:
    found = re.search(rf"\d+#([0-9a-f]{{6,}}(?:\.\d+)?)[^|\s]*\|{line}", text)
    return found.group(1) if found else ""


def _after(text: str) -> str:
    """Return the hash of the file after an edit, as a model finds it: the last one that the answer names."""
    return _named(text, "afterSha256") or _named(text, "sha256")


def _named(text: str, name: str) -> str:
    """Return the hash beside a name, in JSON or in plain words."""
    found = re.search(rf"{name}\W{{1,12}}([0-9a-f]{{64}})", text)
    return found.group(1) if found else ""
