"""A workspace to find things in, on every engine and disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from surehold.search.query import GlobResult, Listing, Search, SearchResult
from surehold.workspace.finder import Finder
from surehold.workspace.paths import Policy
from workspaces import Bench, DiskKind, make_bench

ENGINES = ("ripgrep", "python")


@dataclass(frozen=True)
class Scene:
    """A workspace, and the short way to ask it."""

    bench: Bench
    finder: Finder

    @property
    def root(self) -> Path:
        return self.bench.root

    def put(self, *paths: str, data: bytes = b"needle\n") -> None:
        for path in paths:
            self.bench.put(path, data)

    def search(self, query: str, mode: str = "text", *, limit: int = 100, after: str = "", **more: Any) -> SearchResult:
        return self.finder.search(Search(query=query, mode=mode, **more), limit=limit, after=after)  # type: ignore[arg-type]

    def places(self, query: str, mode: str = "text", **more: Any) -> list[tuple[str, int | None, int | None]]:
        return [(hit.path, hit.line, hit.column) for hit in self.search(query, mode, **more).matches]

    def found(self, query: str = "needle", mode: str = "text", **more: Any) -> list[str]:
        """Return the files with matches."""
        return [path for path, _ in self.search(query, mode, **more).counts]


def make_scene(tmp_path: Path, disk: DiskKind = "local", *, deny: Sequence[str] = (), seconds: float = 20) -> Scene:
    bench = make_bench("memory", disk, tmp_path, policy=Policy(deny=tuple(deny)))
    return Scene(bench, Finder(bench.workspace.reader, seconds=seconds))


def names(result: Listing | GlobResult) -> list[str]:
    entries = result.entries if isinstance(result, Listing) else result.matches
    return [entry.relative for entry in entries]


def on_both(monkeypatch: pytest.MonkeyPatch, ask: Callable[[], SearchResult]) -> tuple[SearchResult, SearchResult]:
    """Ask ripgrep, then the fallback; the answers are made comparable."""
    monkeypatch.delenv("SUREHOLD_RIPGREP", raising=False)
    first = ask()
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off")
    second = ask()
    assert (first.engine, second.engine) == ENGINES
    return first, replace(second, engine="ripgrep")
