"""A file is read and edited through a symbolic link, and neither deleted nor moved through one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.errors import NotAFile, NotFound
from surehold.text.plan import Delete, Keep
from surehold.workspace.proposal import Exact, Proposal
from workspaces import Bench, call, make_bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("memory", "local", tmp_path)
    made.put("d/file", b"old\n")
    (made.root / "link").symlink_to("d/file")
    (made.root / "d/beside").symlink_to("file")
    (made.root / "there").symlink_to("d")
    (made.root / "dangling").symlink_to("nowhere")
    yield made
    made.workspace.close()


def write(bench: Bench, path: str, to: str) -> None:
    edit = Keep() if to else Delete()
    bench.workspace.write(Proposal(path=path, edit=edit, proof=Exact(), to_path=to), call=call("move"))


@pytest.mark.parametrize("to", ["", "new"], ids=["deleted", "moved"])
@pytest.mark.parametrize("path", ["link", "d/beside", "there/beside", "./link", "d/../link", "/link"])
def test_a_file_stays_where_only_a_link_to_it_was_named(bench: Bench, path: str, to: str) -> None:
    named = f"{bench.root}/link" if path == "/link" else path

    with pytest.raises(NotAFile) as refused:
        write(bench, named, to)

    assert (refused.value.reason, refused.value.action) == ("is_a_symlink", "Name the file itself: d/file")
    assert (bench.get("d/file"), bench.get("new")) == (b"old\n", None)


@pytest.mark.parametrize("to", ["", "new"], ids=["deleted", "moved"])
@pytest.mark.parametrize("path", ["dangling", "missing", "missing/x"])
def test_nothing_is_at_a_link_that_leads_nowhere(bench: Bench, path: str, to: str) -> None:
    with pytest.raises(NotFound):
        write(bench, path, to)
    assert (bench.root / "dangling").is_symlink()


@pytest.mark.parametrize("path", ["d/file", "there/file", "d/../d/file"])
def test_a_file_moves_and_goes_below_a_linked_directory(bench: Bench, path: str) -> None:
    write(bench, path, "there/new")
    assert (bench.get("d/file"), bench.get("d/new")) == (None, b"old\n")
    write(bench, "there/new", "")
    assert bench.get("d/new") is None


def test_an_edit_through_a_link_leaves_the_link(bench: Bench) -> None:
    bench.workspace.session().edit("link", ("old", "new"))
    assert (bench.get("d/file"), (bench.root / "link").is_symlink()) == (b"new\n", True)
