"""Corruptions and good edits in real files: the standard library of this interpreter. `bench/sanity.py` takes any release."""

import ast
import random
import sysconfig
import tokenize
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.text.anchored.lines import anchor_lines, judge_quality
from surehold.text.snapshot import Snapshot
from text.sanity_scenes import kinds, report

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
EACH = 100
Corruption = Callable[[random.Random, list[bytes]], list[bytes] | None]


def grounds(seed: str) -> Iterator[tuple[random.Random, Path, list[bytes]]]:
    """Give a file and its lines, again and again."""
    pick = random.Random(seed)
    files = sorted(file for file in LIBRARY.glob("*.py") if 1_000 < file.stat().st_size < 40_000)
    while True:
        file = pick.choice(files)
        yield pick, file, file.read_bytes().splitlines(keepends=True)


def brackets(lines: list[bytes]) -> list[tuple[int, int, int]]:
    tokens = tokenize.tokenize(BytesIO(b"".join(lines)).readline)
    found = [token for token in tokens if token.type == tokenize.OP and token.string in "()[]{}"]
    return [(t.start[0] - 1, len(t.line[: t.start[1]].encode()), 1 if t.string in "([{" else -1) for t in found]


def without_a_bracket(pick: random.Random, lines: list[bytes]) -> list[bytes] | None:
    line, column, _ = pick.choice(brackets(lines))
    return [*lines[:line], lines[line][:column] + lines[line][column + 1 :], *lines[line + 1 :]]


def without_a_line(pick: random.Random, lines: list[bytes]) -> list[bytes] | None:
    """Swallow a line whose bracket has its partner on another one."""
    net: dict[int, int] = {}
    for line, _, step in brackets(lines):
        net[line] = net.get(line, 0) + step
    loose = [line for line, step in net.items() if step]
    line = pick.choice(loose) if loose else -1
    return [*lines[:line], *lines[line + 1 :]] if loose else None


def with_a_doubled_line(pick: random.Random, lines: list[bytes]) -> list[bytes] | None:
    line = pick.randrange(1, len(lines) - 1)
    row, touched = lines[line].decode("utf-8", "replace").rstrip("\n"), lines[line - 1]
    changed = touched.rstrip(b"\n") + b"  # changed\n"
    if judge_quality(row, 1) == "low" or touched == lines[line]:
        return None
    return [*lines[: line - 1], changed, lines[line], *lines[line:]]


def with_a_pasted_anchor(pick: random.Random, lines: list[bytes]) -> list[bytes] | None:
    snapshot, line = Snapshot(b"".join(lines)), pick.randrange(len(lines))
    content = snapshot.lines.contents[line : line + 1]
    (row,) = anchor_lines(content, [snapshot.digests], start=line + 1, encoding=snapshot.encoding)
    return [*lines[:line], f"{row}\n".encode(), *lines[line + 1 :]]


def with_a_conflict(pick: random.Random, lines: list[bytes]) -> list[bytes] | None:
    line = pick.randrange(len(lines))
    return [*lines[:line], pick.choice([b"<<<<<<< HEAD\n", b">>>>>>> other\n"]), *lines[line:]]


CORRUPTIONS: dict[str, tuple[Corruption, str]] = {
    "unclosed bracket": (without_a_bracket, "parse_error"),
    "swallowed line": (without_a_line, "parse_error"),
    "doubled line": (with_a_doubled_line, "seam_duplicate"),
    "pasted anchor": (with_a_pasted_anchor, "anchor_prefix"),
    "conflict marker": (with_a_conflict, "conflict_marker"),
}


@requirement("anchored:sanity:measured")
@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_at_least_99_of_100_corruptions_are_caught(kind: str) -> None:
    corrupt, expected = CORRUPTIONS[kind]
    caught = made = 0
    for pick, file, lines in grounds(kind):
        broken = corrupt(pick, lines)
        if broken is None:
            continue
        made += 1
        caught += expected in kinds(file.name, b"".join(lines), b"".join(broken))
        if made == EACH:
            break

    assert caught >= 0.99 * EACH


@requirement("anchored:sanity:measured")
def test_no_good_edit_is_refused() -> None:
    refused = list[str]()
    for pick, file, lines in islice(grounds("good"), EACH):
        tree = ast.parse(b"".join(lines))
        node = pick.choice(tree.body)
        first, last = node.lineno - 1 - len(getattr(node, "decorator_list", ())), node.end_lineno or node.lineno
        without = [*lines[:first], *lines[last:]]
        found = report(file.name, b"".join(lines), b"".join(without))
        back = report(file.name, b"".join(without), b"".join(lines))
        refused += [f"{file.name}:{first + 1}" for r in (found, back) if r.status == "suspicious"]

    assert refused == []
