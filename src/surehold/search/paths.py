"""Searching for names: a part of a path, or a glob."""

from collections.abc import Callable
from dataclasses import replace

from surehold.search.budget import Budget
from surehold.search.cursor import cursor, place
from surehold.search.glob import Filter, floating, is_glob
from surehold.search.listing import Place
from surehold.search.values import Hit, Search, SearchResult
from surehold.search.walk import Excluding, Tally, Walk

_SHOWN = 3


def search_paths(where: Place, search: Search, *, limit: int, after: str, budget: Budget) -> SearchResult:
    """Return one page of the files and directories whose path matches."""
    question = (search, where.directory.key)
    passed = tuple(str(name) for name in place(question, after)) if after else ()
    filters = Filter(search.include, search.exclude)
    walk = Walk(
        disk=where.disk,
        start=where.directory,
        allowed=where.allowed,
        hidden=search.hidden,
        ignore=search.ignore,
        guide=Excluding(filters),
    )
    found, scanned = _matching(walk, _matcher(search), filters, budget)
    wanted = [parts for parts in found if parts > passed]
    shown = wanted[:limit]
    further = len(shown) < len(wanted)
    base = "" if where.directory.key == "." else where.directory.key + "/"
    notes = list(walk.tally.notes())
    if not found and (search.ignore or not search.hidden):
        everything = replace(walk, hidden=True, ignore=False, tally=Tally())
        others, _ = _matching(everything, _matcher(search), filters, budget)
        if others:
            names = ", ".join("/".join(parts) for parts in others[:_SHOWN]) + (" …" if len(others) > _SHOWN else "")
            notes.append(f"0 matches; {len(others)} that are ignored or hidden: {names}.")
    return SearchResult(
        matches=tuple(Hit(path=base + "/".join(parts), preview="/".join(parts)) for parts in shown),
        files=(),
        files_scanned=scanned,
        engine="python",
        skipped=walk.tally.skipped(),
        truncated=further,
        next=cursor(question, *shown[-1]) if further else "",
        total_matches=len(found),
        notes=tuple(notes),
    )


def _matcher(search: Search) -> Callable[[tuple[str, ...]], bool]:
    fold: Callable[[str], str] = str if search.case_sensitive else str.casefold
    query = fold(search.query)
    if not is_glob(search.query):
        return lambda parts: query in fold("/".join(parts))
    glob = floating(query)
    return lambda parts: glob.matches([fold(name) for name in parts])


def _matching(
    walk: Walk, matches: Callable[[tuple[str, ...]], bool], filters: Filter, budget: Budget
) -> tuple[list[tuple[str, ...]], int]:
    found, number = list[tuple[str, ...]](), 0
    for room in walk.rooms():
        budget.check(number, None, "entries looked at")
        number += len(room.entries)
        parts = ((*room.parents, name) for name, _ in room.entries)
        found += [each for each in parts if matches(each) and filters.takes(each)]
    return sorted(found), number
