"""How many tokens reading and editing take, on real changes: `python bench/tokens.py [name==old..new …]`.

Tokens are estimated as a quarter of the characters, as the tools themselves do; with `--exact` they are counted by the
o200k vocabulary, which the npm package gpt-tokenizer carries. Only what a model reads or writes is counted.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from replay.change import Change, Difference
from replay.fresh import Bench, open_bench
from replay.notations import envelope_patch, operations, string_edits, unified_patch
from replay.sources import Releases, chosen
from table import Row, render

PACKAGES = (
    "django==5.1.15..5.2",
    "sympy==1.13.3..1.14.0",
    "npm:express==4.18.2..4.21.0",
    "npm:bootstrap==5.3.2..5.3.3",
)
FILES = 40
LARGEST = 100_000
LONGEST_LINE = 500
TOKENIZER = "gpt-tokenizer@2.9.0"

Count = Callable[[str], int]


def estimated(text: str) -> int:
    """A quarter of the characters."""
    return (len(text) + 3) // 4


@dataclass(slots=True)
class Texts:
    """What a model reads and writes for the same changes, in every form."""

    reads: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    edits: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    answers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def take(self, bench: Bench, change: Change, folder: Path) -> None:
        """Put one change down in every form, and let the tools answer to it."""
        difference = Difference(change, folder)
        if difference.is_odd or not difference.lines or not difference.keeps_spelling:
            return
        self._read(bench, difference)
        self._edit(bench, difference)

    def _read(self, bench: Bench, difference: Difference) -> None:
        path = bench.place("read", difference)
        hashed = bench.session.read_file(path, hashes=True).content or ""
        lines = difference.lines
        _add(self.reads, "raw text", "".join(lines))
        _add(self.reads, "numbered lines", "".join(f"{n}\t{line}" for n, line in enumerate(lines, start=1)))
        _add(self.reads, "lines with anchors", hashed)

    def _edit(self, bench: Bench, difference: Difference) -> None:
        path = difference.change.path
        anchored = bench.place("anchored", difference)
        call = {"path": path, "operations": operations(difference, bench.anchors(anchored))}
        _add(self.edits, "anchored operations", json.dumps(call, ensure_ascii=False))
        answer = bench.edit({**call, "path": anchored, "safety_check": "warn"})
        _add(self.answers, "anchored operations", answer.text)
        exact = bench.place("exact", difference)
        strings = {"path": path, "expectedSha256": difference.before.sha256, "edits": string_edits(difference)}
        _add(self.edits, "exact-string edits", json.dumps(strings, ensure_ascii=False))
        answer = bench.session.answer("edit_file", {**strings, "path": exact})
        _add(self.answers, "exact-string edits", answer.text)
        for name, patch in (("unified diff", unified_patch), ("patch envelope", envelope_patch)):
            patched = bench.place(name.replace(" ", "-"), difference)
            _add(self.edits, name, json.dumps({"patch": patch(difference, path)}, ensure_ascii=False))
            _add(self.answers, name, bench.session.answer("apply_patch", {"patch": patch(difference, patched)}).text)


def rows(packages: Sequence[str] = PACKAGES, *, exact: bool = False, cache: Path | None = None) -> list[Row]:
    """Return the figures: reads against raw text, edits against exact-string edits."""
    folder = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surehold-replay"
    changes = [
        change
        for package in packages
        for change in chosen(Releases.parse(package), folder, limit=FILES, largest=LARGEST)
        if _is_written(change)
    ]
    texts = _texts(changes)
    every = [list(group.values()) for group in (texts.reads, texts.edits, texts.answers)]
    flat = ["\0".join(one) for group in every for one in group]
    counts = iter(_counted(flat, folder) if exact else [estimated(text) for text in flat])
    count = len(next(iter(texts.reads.values())))
    return [
        *_compared("read", {name: next(counts) for name in texts.reads}, "numbered lines", count),
        *_compared("edit", {name: next(counts) for name in texts.edits}, "exact-string edits", count),
        *_compared("answer to", {name: next(counts) for name in texts.answers}, "exact-string edits", count),
    ]


def _is_written(change: Change) -> bool:
    """Tell whether people write such a file: no list of checksums, no bundle with endless lines."""
    return not change.path.startswith("dist-info/") and max(map(len, change.before.split(b"\n"))) <= LONGEST_LINE


def _texts(changes: Sequence[Change]) -> Texts:
    texts = Texts()
    with open_bench() as (bench, folder):
        for change in changes:
            texts.take(bench, change, folder)
    return texts


def _compared(what: str, tokens: dict[str, int], baseline: str, count: int) -> list[Row]:
    base = tokens[baseline]
    return [
        Row(name=f"{what} {name}", measured=total / base, note=f"{total / count:,.0f} tokens per file, {count} files")
        for name, total in tokens.items()
    ]


def _counted(texts: Sequence[str], cache: Path) -> list[int]:
    """Count with a real vocabulary, in node; the package is fetched by its name."""
    home = cache / TOKENIZER.replace("@", "-")
    if not home.exists():
        subprocess.run(("npm", "install", "--silent", "--no-save", "--prefix", home, TOKENIZER), check=True)
    script = (
        "const {countTokens} = require('gpt-tokenizer/encoding/o200k_base');"
        "const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "console.log(JSON.stringify(texts.map(text => text.split('\\0').reduce((n, t) => n + countTokens(t), 0))));"
    )
    told = subprocess.run(
        ("node", "-e", script), cwd=home, input=json.dumps(texts), text=True, check=True, capture_output=True
    )
    return [int(count) for count in json.loads(told.stdout)]


def _add(group: dict[str, list[str]], name: str, text: str) -> None:
    group.setdefault(name, []).append(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="NAME==OLD..NEW")
    parser.add_argument("--exact", action="store_true", help="count with a real vocabulary (needs node and npm)")
    parser.add_argument("--cache", type=Path, help="where packages are kept")
    asked = parser.parse_args()
    print(render(rows(asked.packages or PACKAGES, exact=asked.exact, cache=asked.cache)))


if __name__ == "__main__":
    sys.exit(main())
