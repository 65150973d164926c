"""The figures: per package, all together against the goals, and what deserves a look."""

from collections.abc import Iterator, Sequence

from table import Row, render

from replay.outcome import NOTATIONS, STALE_MODES, Score


def goals(whole: Score) -> list[Row]:
    """Return the figures that have a goal; all of them are better when smaller."""
    return [*(_fresh_goals(whole) if whole.files else ()), *_stale_goals(whole)]


def _fresh_goals(whole: Score) -> Iterator[Row]:
    def row(name: str, part: int, of: int, goal: float, note: str = "") -> Row:
        return Row(name=name, measured=_share(part, of), unit="%", goal=goal, note=f"{part} of {of} {note}")

    inexact = whole.files - whole.verdicts["anchored"]["exact"]
    others = [(whole.tried(name), whole.verdicts[name]["exact"]) for name in NOTATIONS[1:]]
    calls = sum(map(whole.tried, NOTATIONS))
    refused = whole.strict_refusals
    yield row("edit: files not byte-exact", inexact, whole.files, 0.0, "files")
    yield row("edit: refused by the safety check", refused.total(), whole.files, 0.1, _listed(refused))
    yield row("edit: hunks without an anchor", whole.unaddressed, whole.hunks, 0.0, "hunks")
    yield row(
        "other tools: files not byte-exact", sum(a - b for a, b in others), sum(a for a, _ in others), 0.0, "calls"
    )
    yield row("all tools: wrong bytes", whole.wrong, calls, 0.0, "calls")


def _stale_goals(whole: Score) -> Iterator[Row]:
    for mode in STALE_MODES:
        counts = whole.stale[mode]
        batches = counts.total()
        for verdict, goal in (("refused", 15.0), ("wrong", 0.02)):
            note = f"{counts[verdict]} of {batches} batches"
            if verdict == "refused" and counts[verdict]:
                note += f": {_listed(whole.stale_refusals[mode])}"
            if batches:
                name = f"stale, {mode}: {verdict}"
                yield Row(name=name, measured=_share(counts[verdict], batches), unit="%", goal=goal, note=note)


def tables(scores: Sequence[Score], whole: Score, *, shown: int) -> str:
    """Return everything as text."""
    parts = list[str]()
    if whole.files:
        parts.append(_grid([_FRESH, *(_fresh(score) for score in (*scores, whole))]))
    if any(counts for counts in whole.stale.values()):
        parts.append(_grid([_STALE, *(_stale(score) for score in (*scores, whole))]))
    if whole.incidents:
        # What is grave comes first: refusals of stale edits are many, and allowed.
        ordered = sorted(whole.incidents, key=lambda each: each.where in STALE_MODES and each.kind != "WRONG")
        more = [f"  … {len(ordered) - shown} more: --show {len(ordered)}"] if len(ordered) > shown else []
        parts.append("\n".join(["For a look:", *map(str, ordered[:shown]), *more]))
    return "\n\n".join([*parts, render(goals(whole))])


_FRESH = (
    "package",
    "files",
    "hunks",
    "edit exact",
    "unsayable",
    "refused",
    "strict",
    "no anchor",
    "wrong",
    "edit_file",
    "multi_edit",
    "unified",
    "envelope",
    "s",
)
_STALE = ("stale", *(f"{mode}{what}" for mode in STALE_MODES for what in ("", " applied", " wrong")), "not begun")


def _fresh(score: Score) -> tuple[str, ...]:
    counts = score.verdicts["anchored"]
    return (
        score.name,
        str(score.files),
        str(score.hunks),
        f"{_share(counts['exact'], score.files):.2f} %",
        str(counts["unsayable"]),
        str(counts["refused"]),
        str(score.strict_refusals.total()),
        str(score.unaddressed),
        str(score.wrong),
        *(f"{score.verdicts[where]['exact']}/{score.tried(where)}" for where in NOTATIONS[1:]),
        f"{score.seconds:.0f}",
    )


def _stale(score: Score) -> tuple[str, ...]:
    cells = list[str]()
    for counts in score.stale.values():
        batches = counts.total()
        cells += (str(batches), f"{_share(counts['applied'], batches):.2f} %" if batches else "", str(counts["wrong"]))
    return (score.name, *cells, str(score.not_begun))


def _grid(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    ruled = [lines[0], tuple("─" * width for width in widths), *lines[1:]]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in ruled
    )


def _listed(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{count} {name}" for name, count in ordered)


def _share(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 0.0
