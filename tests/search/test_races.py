"""An attacker swaps a directory for a link to the outside, and back, while we look for files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from disk.test_races import RACES, SECRET, attacked, rounds
from search.scenes import ENGINES
from spec.marks import requirement
from surehold.errors import SureholdError
from surehold.search.query import Search
from workspaces import real_workspace

pytestmark = requirement("promise:contained:races")
REFUSALS = {"symlink_escape", "no_such_directory", "not_a_directory", "unstable_read", "no_such_file"}


@pytest.mark.parametrize("engine", ENGINES)
def test_searches_during_a_swap_attack_show_nothing_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, count: Callable[[str, int], None]
) -> None:
    monkeypatch.setenv("SUREHOLD_RIPGREP", "off" if engine == "python" else "")
    shown, refused = set[str](), set[str]()
    everything = Search(
        query="secret|public", mode="regex" if engine == "ripgrep" else "text", ignore=False, hidden=True
    )
    secret = Search(query=SECRET.decode(), ignore=False, hidden=True)
    public = Search(query="public", ignore=False, hidden=True)
    with attacked(tmp_path) as root, real_workspace(root) as workspace:
        for number in rounds(RACES // 6, lambda: "public" in shown):  # noqa: B023 - one and the same set
            search = (everything, secret, public)[number % 3]
            try:
                result = workspace.finder.search(replace(search, root=("d", ".", "d/e")[number % 7 % 3]))
            except SureholdError as error:
                refused.add(error.reason)
                continue
            shown |= {hit.preview for hit in result.matches}
            assert not any(file.snapshot.data != b"public" for file in result.files)
            if search is secret:
                assert (result.matches, result.total_matches) == ((), 0)
    count("raced searches and walks", RACES // 6)
    assert shown == {"public"}
    assert refused <= REFUSALS


def test_walks_during_a_swap_attack_show_nothing_from_outside(
    tmp_path: Path, count: Callable[[str, int], None]
) -> None:
    seen, refused = set[tuple[str, str]](), set[str]()
    with attacked(tmp_path) as root, real_workspace(root) as workspace:
        (tmp_path / "outside/only-outside").write_bytes(SECRET)
        for number in rounds(RACES // 2, lambda: ("d/e/f", "file") in seen):  # noqa: B023 - one and the same set
            try:
                if number % 2:
                    entries = workspace.finder.list(("d", ".")[number % 4 == 1], recursive=True).entries
                else:
                    entries = workspace.finder.glob("**/*").matches
            except SureholdError as error:
                refused.add(error.reason)
                continue
            seen |= {(entry.key, entry.type) for entry in entries}
    count("raced searches and walks", RACES // 2)
    names = {key.rpartition("/")[2] for key, _ in seen}
    assert names == {"d", "e", "f", "link"}
    assert refused <= REFUSALS
