"""How many good edits the sanity checks refuse, and how many broken ones they let pass.

    python bench/sanity.py OLD NEW [OLD NEW …]

takes pairs of unpacked releases (`pip download --no-deps`, `npm pack`). A file that differs between the two is one good edit, hunk by hunk; files of the new
release are the ground for seeded corruptions. What is refused, and what is missed, is listed by `--show`.
"""

import argparse
import random
import re
import sys
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from table import Row, render
from tree_sitter import Node

from surehold.syntax.grammar import Grammar
from surehold.syntax.languages import parsers_for
from surehold.text.anchored.lines import anchor_lines, judge_quality
from surehold.text.plan import EditPlan, Span, SpliceSpans, spans_between
from surehold.text.sanity.check import SanityCheck, SanityReport
from surehold.text.snapshot import Snapshot

EACH = 100
"""Corruptions of each kind in each language."""
LANGUAGES = {
    "Python": (".py",),
    "JavaScript": (".js", ".mjs"),
    "TypeScript": (".ts", ".mts"),
    "Java": (".java",),
    "C++": (".h", ".cpp"),
}
GRAMMARS = {".py": "python", ".js": "javascript", ".mjs": "javascript", ".ts": "typescript", ".mts": "typescript"}
GRAMMARS |= {".java": "java", ".h": "cpp", ".cpp": "cpp"}
OPENS, CLOSES = {"(", "[", "{"}, {")", "]", "}"}
LARGEST = 400_000


@dataclass(slots=True)
class Ground:
    """A sound file, and a place in it."""

    path: Path
    lines: list[bytes]
    pick: random.Random
    brackets: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """Line, column and depth change of every bracket that is one for the grammar."""

    def block(self, line: int) -> tuple[int, int]:
        """A few lines that end with this one."""
        return max(0, line - self.pick.randrange(6)), line + 1


Edit = tuple[int, int, list[bytes]]
"""Lines from here to there become these."""


def unclosed(ground: Ground) -> Edit | None:
    """One bracket is missing in the new text."""
    if not ground.brackets:
        return None
    line, column, _ = ground.pick.choice(ground.brackets)
    start, end = ground.block(line)
    text = ground.lines[line]
    return start, end, [*ground.lines[start:line], text[:column] + text[column + 1 :]]


def swallowed(ground: Ground) -> Edit | None:
    """The range covers one line too many, and its bracket has its partner elsewhere."""
    net = Counter[int]()
    for line, _, step in ground.brackets:
        net[line] += step
    loose = [line for line, step in net.items() if step]
    if not loose:
        return None
    line = ground.pick.choice(loose)
    start, end = ground.block(line)
    return start, end, ground.lines[start:line]


def lost(ground: Ground) -> Edit | None:
    """Any line at all is gone: most statements leave a sound file behind, so this has no goal."""
    line = ground.pick.randrange(len(ground.lines))
    start, end = ground.block(line)
    return (start, end, ground.lines[start:line]) if ground.lines[line].strip() else None


def doubled(ground: Ground) -> Edit | None:
    """The new text repeats the line that follows the range, or the one before it."""
    good = [n for n in range(1, len(ground.lines) - 1) if _is_good(ground.lines[n])]
    if not good:
        return None
    line = ground.pick.choice(good)
    below = ground.pick.random() < 0.5
    start, end = (line - 1, line) if below else (line + 1, min(line + 3, len(ground.lines)))
    block = [re.sub(rb"[a-z]", b"q", row, count=1) for row in ground.lines[start:end]]
    if ground.lines[line] in ground.lines[start:end] or block == ground.lines[start:end]:
        return None
    return (start, end, [*block, ground.lines[line]]) if below else (start, end, [ground.lines[line], *block])


def anchored(ground: Ground) -> Edit | None:
    """Rows were pasted with their anchors."""
    start, end = ground.block(ground.pick.randrange(len(ground.lines)))
    snapshot = Snapshot(b"".join(ground.lines))
    shown = anchor_lines(
        snapshot.lines.contents[start:end], [snapshot.digests], start=start + 1, encoding=snapshot.encoding
    )
    pasted = [f"{row}\n".encode() for row in shown]
    only = ground.pick.randrange(len(pasted)) if ground.pick.random() < 0.5 else None
    return start, end, [p if only in (None, i) else ground.lines[start + i] for i, p in enumerate(pasted)]


def conflict(ground: Ground) -> Edit | None:
    """Conflict markers stayed: all of them, or one that was overlooked."""
    start, end = ground.block(ground.pick.randrange(len(ground.lines)))
    block = ground.lines[start:end]
    ours, middle, theirs = b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> feature/other\n"
    whole = [ours, *block, middle, *block, theirs]
    return start, end, ground.pick.choice([whole, [ours, *block], [*block, theirs], [*block, middle]])


KINDS: dict[str, Callable[[Ground], Edit | None]] = {
    "unclosed bracket": unclosed,
    "swallowed line": swallowed,
    "doubled seam line": doubled,
    "pasted anchor": anchored,
    "conflict marker": conflict,
    "any lost line": lost,
}


def judge(path: Path, plan: EditPlan) -> SanityReport:
    """Run the check as an edit does."""
    return SanityCheck(path=str(path), mode="warn", parse=parsers_for).report_on(plan)


def false_refusals(pairs: Sequence[tuple[Path, Path]], show: bool) -> Iterator[Row]:
    edits, hunks, refused, unchecked = Counter[str](), 0, Counter[str](), 0
    slowest, spent = 0.0, 0.0
    for path, plan in _changes(pairs):
        start = time.perf_counter()
        report = judge(path, plan)
        took = time.perf_counter() - start
        slowest, spent = max(slowest, took), spent + took
        edits[path.suffix] += 1
        hunks += len(plan.spans)
        unchecked += any(f.kind == "syntax_not_checked" for f in report.findings)
        for kind in {f.kind for f in report.findings if f.suspicious}:
            refused[kind] += 1
        refused["any"] += report.status == "suspicious"
        if show and report.status == "suspicious":
            print(f"refused  {path}\n         {report.findings[0].message}", file=sys.stderr)
    total = edits.total()
    note = ", ".join(f"{count} {suffix}" for suffix, count in edits.most_common(12))
    yield Row(
        name="good edits refused",
        measured=100 * refused["any"] / total,
        unit="%",
        goal=0.1,
        note=f"{refused['any']} of {total} files, {hunks} hunks",
    )
    for kind, count in refused.items():
        if kind != "any":
            yield Row(name=f"  {kind}", measured=100 * count / total, unit="%", note=str(count))
    yield Row(name="not parsed before, or too large", measured=100 * unchecked / total, unit="%", note=note)
    yield Row(
        name="time for one edit", measured=1000 * spent / total, unit="ms", note=f"slowest {1000 * slowest:.0f} ms"
    )


def missed_corruptions(roots: Sequence[Path], show: bool) -> Iterator[Row]:
    for kind, corrupt in KINDS.items():
        tried, missed = 0, Counter[str]()
        for language, suffixes in LANGUAGES.items():
            pick = random.Random(f"{kind} {language}")
            for ground, edit in _corruptions(roots, suffixes, corrupt, pick):
                tried += 1
                plan = _plan(ground, edit)
                if not _is_caught(judge(ground.path, plan), kind):
                    missed[language] += 1
                    if show:
                        print(
                            f"missed   {kind} {ground.path}:{edit[0] + 1}-{edit[1]}\n{b''.join(edit[2]).decode()}",
                            file=sys.stderr,
                        )
        note = f"{missed.total()} of {tried} missed" + "".join(f", {n} in {name}" for name, n in missed.items())
        yield Row(
            name=f"missed: {kind}",
            measured=100 * missed.total() / max(tried, 1),
            unit="%",
            goal=None if corrupt is lost else 1.0,
            note=note,
        )


def _is_caught(report: SanityReport, kind: str) -> bool:
    """Tell whether it is refused, and a doubled line for being one: what else is wrong with that text is an accident."""
    return any(f.suspicious and (f.kind == "seam_duplicate" or kind != "doubled seam line") for f in report.findings)


def _changes(pairs: Sequence[tuple[Path, Path]]) -> Iterator[tuple[Path, EditPlan]]:
    for old_root, new_root in pairs:
        for old in sorted(old_root.rglob("*")):
            new = new_root / old.relative_to(old_root)
            if not (old.is_file() and new.is_file()) or old.suffix in (".map", ".mo", ".so"):
                continue
            before, after = Snapshot(old.read_bytes()), Snapshot(new.read_bytes())
            if before == after or not (before.is_text and after.is_text) or b"\0" in before.data[:8192]:
                continue
            yield new, SpliceSpans(spans_between(before, after)).plan(before)


def _corruptions(
    roots: Sequence[Path], suffixes: tuple[str, ...], corrupt: Callable[[Ground], Edit | None], pick: random.Random
) -> Iterator[tuple[Ground, Edit]]:
    files = sorted(
        f for root in roots for f in root.rglob("*") if f.suffix in suffixes and 400 < f.stat().st_size < LARGEST
    )
    made = 0
    for _ in range(EACH * 20):
        if made == EACH or not files:
            return
        ground = _ground(pick.choice(files), pick)
        edit = corrupt(ground) if ground else None
        if ground and edit and ground.lines[edit[0] : edit[1]] != edit[2]:
            made += 1
            yield ground, edit


def _ground(path: Path, pick: random.Random) -> Ground | None:
    data = path.read_bytes()
    if (
        b"\r" in data
        or any(reading.find_flaw(data) for reading in parsers_for(str(path), data)[:1])
        or not Snapshot(data).is_text
    ):
        return None
    module = f"tree_sitter_{GRAMMARS[path.suffix]}"
    function = "language_typescript" if "typescript" in module else "language"
    tree = Grammar(name="", module=module, function=function).parse_tree(data)
    if tree is None or tree.root_node.has_error:
        return None
    ground = Ground(path, data.splitlines(keepends=True), pick)
    ground.brackets = list(_brackets(tree.root_node, [0, *accumulate(map(len, ground.lines))]))
    return ground if len(ground.lines) > 8 and len(ground.lines) == data.count(b"\n") else None


def _brackets(root: Node, starts: list[int]) -> Iterator[tuple[int, int, int]]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in OPENS or node.type in CLOSES:
            line = bisect_right(starts, node.start_byte) - 1
            yield line, node.start_byte - starts[line], 1 if node.type in OPENS else -1
        stack += node.children


def _plan(ground: Ground, edit: Edit) -> EditPlan:
    start, end, new = edit
    before = Snapshot(b"".join(ground.lines))
    begin = sum(map(len, ground.lines[:start]))
    stop = begin + sum(map(len, ground.lines[start:end]))
    return SpliceSpans((Span(start=begin, end=stop, new=b"".join(new)),)).plan(before)


def _is_good(row: bytes) -> bool:
    return judge_quality(row.decode("utf-8", "replace").rstrip("\n"), 1) != "low"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="OLD NEW")
    parser.add_argument("--show", action="store_true", help="list what was refused or missed")
    asked = parser.parse_args()
    if len(asked.folders) % 2:
        parser.error("name the old and the new folder of every release")
    pairs = list(zip(asked.folders[::2], asked.folders[1::2], strict=True))
    found = [*false_refusals(pairs, asked.show), *missed_corruptions([new for _, new in pairs], asked.show)]
    print(render(found))


if __name__ == "__main__":
    main()
