"""Listing and globbing, on this machine and in memory."""

import os
from pathlib import Path

import pytest

from search.scenes import Scene, make_scene, names
from spec.marks import requirement
from surehold.errors import DeniedByRule, InvalidArgument, InvalidPattern, NotFound
from surehold.search.query import Skipped


def test_a_directory_is_listed_in_order_with_types_and_sizes(shelf: Scene) -> None:
    shelf.put("b.txt", "a/x", ".hidden")

    listing = shelf.finder.list()

    assert [(entry.name, entry.key, entry.type, entry.depth) for entry in listing.entries] == [
        ("a", "a", "directory", 1),
        ("b.txt", "b.txt", "file", 1),
    ]
    assert listing.entries[1].size == 7
    assert listing.entries[1].mtime_ns > 0
    assert (listing.total, listing.truncated, listing.next) == (2, False, "")
    assert listing.skipped == Skipped(ignored=0, hidden=1)
    assert names(shelf.finder.list(hidden=True)) == [".hidden", "a", "b.txt"]
    assert [entry.key for entry in shelf.finder.list("a").entries] == ["a/x"]


def test_a_recursive_listing_puts_a_directory_right_before_its_entries(shelf: Scene) -> None:
    shelf.put("a/b/c", "a.txt", "a/z", "a-b", "B")

    assert names(shelf.finder.list(recursive=True)) == ["B", "a", "a/b", "a/b/c", "a/z", "a-b", "a.txt"]
    assert names(shelf.finder.list(recursive=True, max_depth=2)) == ["B", "a", "a/b", "a/z", "a-b", "a.txt"]
    assert [entry.depth for entry in shelf.finder.list("a", recursive=True).entries] == [1, 2, 1]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("recursive", [True, False])
def test_pages_of_a_listing_are_complete_and_stable(shelf: Scene, size: int, recursive: bool) -> None:
    shelf.put("a/b/c", "a.txt", "a/z", "a-b", "B", "a/b/d", "z/1", "z/2")
    whole = names(shelf.finder.list(recursive=recursive))
    pages, after = list[str](), ""
    while True:
        page = shelf.finder.list(recursive=recursive, limit=size, after=after)
        pages += names(page)
        after = page.next
        if not page.truncated:
            break

    assert pages == whole


def test_a_page_continues_behind_an_entry_that_is_gone(local: Scene) -> None:
    local.put("a/1", "a/2", "b")
    page = local.finder.list(recursive=True, limit=2)
    (local.root / "a/1").unlink()

    assert names(local.finder.list(recursive=True, after=page.next)) == ["a/2", "b"]


def test_links_and_other_things_are_named_and_not_followed(local: Scene, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"x")
    local.put("f")
    (local.root / "link").symlink_to(tmp_path / "outside")
    (local.root / "dead").symlink_to("nowhere")
    os.mkfifo(local.root / "pipe")

    listing = local.finder.list(recursive=True)

    assert [(entry.name, entry.type) for entry in listing.entries] == [
        ("dead", "symlink"),
        ("f", "file"),
        ("link", "symlink"),
        ("pipe", "other"),
    ]
    assert names(local.finder.glob("**/secret")) == []


@pytest.mark.parametrize("path", ["missing", "f"])
def test_what_is_no_directory_cannot_be_listed(shelf: Scene, path: str) -> None:
    shelf.put("f")

    with pytest.raises(NotFound) as caught:
        shelf.finder.list(path)

    assert caught.value.reason == ("not_a_directory" if path == "f" else "no_such_directory")


@pytest.mark.parametrize("more", [{"limit": 0}, {"max_depth": 0}, {"after": "nonsense"}])
def test_numbers_and_cursors_that_make_no_sense_are_refused(shelf: Scene, more: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        shelf.finder.list(**more)  # type: ignore[arg-type]


def test_denied_entries_are_neither_listed_nor_matched(tmp_path: Path) -> None:
    scene = make_scene(tmp_path, "memory", deny=["secrets/", "*.key"])
    scene.put("a/ok", "a/x.key", "secrets/y")

    listing = scene.finder.list(recursive=True)

    assert (names(listing), listing.skipped.denied) == (["a", "a/ok"], 2)
    assert names(scene.finder.glob("**")) == ["a", "a/ok"]
    assert names(scene.finder.glob("secrets/*")) == []
    assert [hit.path for hit in scene.search("y", "path").matches] == []
    with pytest.raises(DeniedByRule):
        scene.finder.list("secrets")


def test_nested_ignore_files_decide_and_take_back(shelf: Scene) -> None:
    shelf.put(".gitignore", data=b"*.log\n/build\nnode_modules/\n!keep.log\n# no\n\\#odd\ndocs/**/tmp\n")
    shelf.put("sub/.gitignore", data=b"!special.log\n/only-here\n")
    shelf.put("a.log", "keep.log", "build/x", "sub/build/y", "node_modules/m/i.js", "sub/special.log", "sub/b.log")
    shelf.put("#odd", "docs/a/b/tmp", "docs/tmp", "docs/x", "sub/only-here", "sub/deep/only-here")

    found = [entry.relative for entry in shelf.finder.list(recursive=True).entries if entry.type == "file"]

    assert found == ["docs/x", "keep.log", "sub/build/y", "sub/deep/only-here", "sub/special.log"]
    assert names(shelf.finder.list("sub", recursive=True)) == [
        "build",
        "build/y",
        "deep",
        "deep/only-here",
        "special.log",
    ]
    assert len(shelf.finder.list(recursive=True, ignore=False).entries) > len(found) + 10


def test_rules_of_directories_above_count_up_to_the_root(shelf: Scene) -> None:
    shelf.put(".gitignore", data=b"/a/b/hide\n*.tmp\na/*/star\n/b\n**/any\nscripts/*\n")
    shelf.put("a/b/hide", "a/b/x.tmp", "a/b/star", "a/b/b", "a/b/any", "a/b/show", "scripts/s")

    assert names(shelf.finder.list("a/b")) == ["b", "show"]
    assert names(shelf.finder.list("scripts")) == []


@requirement("files:glob:matches")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", ["top.py"]),
        ("**/*.py", ["src/a.py", "src/deep/b.py", "top.py"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**", ["src/a.py", "src/deep", "src/deep/b.py", "src/deep/c.ts"]),
        ("src/**/*.{py,ts}", ["src/a.py", "src/deep/b.py", "src/deep/c.ts"]),
        ("**/deep", ["src/deep"]),
        ("**/[ab].py", ["src/a.py", "src/deep/b.py"]),
        ("**/[!ab].py", []),
        ("???.py", ["top.py"]),
        ("/top.py", ["top.py"]),
        ("./top.py", ["top.py"]),
        ("**/**/**/c.ts", ["src/deep/c.ts"]),
        (".github/*", [".github/ci.yml"]),
        ("**/*.yml", []),
        ("**/.env", [".env"]),
        ("*", ["src", "top.py"]),
    ],
)
def test_a_glob_matches_what_people_expect(shelf: Scene, pattern: str, expected: list[str]) -> None:
    shelf.put("top.py", "src/a.py", "src/deep/b.py", "src/deep/c.ts", ".github/ci.yml", ".env", ".cache/.env")

    result = shelf.finder.glob(pattern)

    assert (names(result), result.total) == (expected, len(expected))


@requirement("files:glob:matches")
def test_a_glob_has_facts_limits_excludes_and_a_root(shelf: Scene) -> None:
    shelf.put("a/1.py", "a/2.py", "a/gen/3.py", "b/4.py")

    result = shelf.finder.glob("**/*.py", limit=2)

    assert [(entry.key, entry.type, entry.size) for entry in result.matches] == [
        ("a/1.py", "file", 7),
        ("a/2.py", "file", 7),
    ]
    assert (result.truncated, result.total) == (True, 4)
    assert names(shelf.finder.glob("**/*.py", exclude=("gen", "b/"))) == ["a/1.py", "a/2.py"]
    assert [(each.key, each.relative) for each in shelf.finder.glob("*.py", root="a").matches] == [
        ("a/1.py", "1.py"),
        ("a/2.py", "2.py"),
    ]


def test_a_glob_without_matches_says_why(shelf: Scene) -> None:
    shelf.put("src/a.py", ".x/b.py", ".gitignore", data=b"/src\n")

    assert shelf.finder.glob("*.py").notes == (
        "`*.py` looks only in the directory itself; `**/*.py` looks below it too.",
    )
    assert shelf.finder.glob("**/a.py").notes == ("0 matches; 1 ignored or hidden entry matches: src/a.py.",)


@pytest.mark.parametrize(
    "pattern",
    [
        "{a,b}" * 30,
        "{" * 3000,
        "a{b",
        "a}b",
        "[a",
        "x" * 10_000,
        "",
        "/",
        "../*",
        "[b-a]",
        "\\",
        "{" * 50 + "a" + "}" * 50,
        "a\0",
    ],
)
def test_a_glob_that_is_a_bomb_or_a_mistake_is_refused_at_once(shelf: Scene, pattern: str) -> None:
    with pytest.raises(InvalidPattern) as caught:
        shelf.finder.glob(pattern)

    assert caught.value.reason == "invalid_glob"


@pytest.mark.parametrize("pattern", ["*a" * 100 + "b", "**/" * 100 + "x", "?*" * 100 + "b", "[a]*" * 100 + "c"])
def test_no_pattern_is_slow(local: Scene, pattern: str) -> None:
    local.put("a" * 250, *(f"d{number}/{'a' * 200}" for number in range(50)))

    assert names(local.finder.glob("**/" + pattern)) == []
    (local.root / ".gitignore").write_text(pattern + "\n")
    assert len(local.finder.list(recursive=True).entries) == 101


def test_a_deep_tree_is_walked_to_its_end(local: Scene) -> None:
    deep = "/".join(["d"] * 300)
    here = os.open(local.root, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("needle", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)

    assert names(local.finder.glob("**/needle")) == [deep + "/needle"]
    assert len(local.finder.list(recursive=True, max_depth=5000).entries) == 301


def test_names_that_are_not_text_are_listed(local: Scene) -> None:
    Path(os.fsdecode(os.fsencode(local.root) + b"/bad\xff\n")).write_bytes(b"")

    assert names(local.finder.list()) == ["bad\udcff\n"]
    assert names(local.finder.glob("bad*")) == ["bad\udcff\n"]
