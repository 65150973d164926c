"""Which file a path means, under which name the rules look at it, and which names a history may show."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.disk.base import EntryStat
from surehold.disk.local import LocalDisk
from surehold.errors import DeniedByRule, NotAFile, OutsideWorkspace, ProtectedPath
from surehold.workspace.paths import PathResolver, Policy, spelled_path

POLICY = Policy(deny=("/secret", "private/"), ask=("/asked",), unprotected=("free/.git",))


@pytest.fixture
def names(tmp_path: Path) -> Iterator[PathResolver]:
    """Two roots with the same files: a secret, a link to it, and a directory."""
    roots = [tmp_path / name for name in ("one", "two")]
    for root in roots:
        (root / "d").mkdir(parents=True)
        (root / "secret").write_text("")
        (root / "d" / "secret").write_text("")
        (root / "link").symlink_to("secret")
        (root / "d" / "link").symlink_to("../d/secret")
    disk = LocalDisk([str(root) for root in roots], durability="none")
    yield PathResolver(disk, POLICY)
    disk.close()


def test_a_path_is_named_as_it_was_asked_for_and_a_bare_target_by_its_key(names: PathResolver) -> None:
    asked = names.resolve_readable("d/../d/link")
    bare = names.disk.resolve("d/link")

    assert (asked.key, asked.asked, spelled_path(asked)) == ("d/secret", "d/../d/link", "d/../d/link")
    assert (bare.asked, spelled_path(bare), spelled_path("d/link")) == ("", "d/secret", "d/link")
    assert names.resolve_readable(asked) is asked
    assert names.resolve_readable(bare) == bare


@pytest.mark.parametrize("where", ["one", "two"])
def test_a_rule_about_a_place_holds_below_each_root_and_for_what_leads_there(names: PathResolver, where: str) -> None:
    root = next(root for root in names.disk.roots if root.endswith(where))
    for word in ("secret", "link", "./secret", "private/x"):
        with pytest.raises(DeniedByRule):
            names.resolve_readable(f"{root}/{word}")
    assert names.resolve_readable(f"{root}/d/secret").parts == ("d", "secret")
    key = "{}" if where == "one" else f"{root}/{{}}"
    shown = {name: names.may_show_recorded(key.format(name)) for name in ("secret", "d/secret", "link", "private/x")}
    assert shown == {"secret": False, "d/secret": True, "link": True, "private/x": False}
    target = names.resolve_readable(f"{root}/asked")
    assert names.rules_for(target, [target]).asked_by == "/asked"


def test_a_recorded_name_is_the_key_of_where_a_path_leads_or_the_path_itself(names: PathResolver) -> None:
    first, second = names.disk.roots
    words = ["d/link", f"{first}/d/secret", f"{second}/d/link", "", "/elsewhere", "secret", "a\0b"]

    assert [names.recorded_name(word) for word in words] == [
        "d/secret",
        "d/secret",
        f"{second}/d/secret",
        "",
        "/elsewhere",
        "secret",
        "a\0b",
    ]
    with pytest.raises(OutsideWorkspace):
        names.resolve_readable("/elsewhere")


def test_a_root_is_a_directory_that_is_there(names: PathResolver) -> None:
    root, missing = names.disk.resolve("."), names.disk.resolve("missing")
    found = names.stat_entry(names.disk.resolve("d"))

    assert names.stat_entry(root) == EntryStat("directory", 0, 0, 0)
    assert found
    assert (found.type, names.stat_entry(missing)) == ("directory", None)
    assert names.parent_of(names.disk.resolve("d/secret")).key == "d"


@pytest.mark.parametrize("word", ["d/link", "./d/link"])
def test_what_is_moved_or_deleted_is_no_link(names: PathResolver, word: str) -> None:
    with pytest.raises(NotAFile) as refused:
        names.refuse_link(names.resolve_readable(word))
    assert (refused.value.reason, refused.value.details) == ("is_a_symlink", {"leads_to": "d/secret"})
    assert refused.value.path == word
    for other in ("d/secret", ".", "d/..", "missing", "missing/below"):
        names.refuse_link(names.resolve_readable(other))
    (Path(names.disk.roots[0]) / "d" / "link").unlink()
    (Path(names.disk.roots[0]) / "d" / "link").symlink_to("missing")
    names.refuse_link(names.resolve_readable("d/link"))  # it leads to nothing, so that is what is meant


def test_a_name_is_told_from_its_escaped_form_by_what_is_there(names: PathResolver) -> None:
    root = Path(names.disk.roots[0])
    (root / "caf\udce9").write_text("")

    assert names.resolve_readable("caf\\xe9").parts == ("caf\udce9",)
    (root / "caf\\xe9").write_text("")
    assert names.resolve_readable("caf\\xe9").parts == ("caf\\xe9",)
    assert names.resolve_readable("new\\xe9").parts == ("new\\xe9",)


@pytest.mark.parametrize(
    ("written", "protected_by"),
    [
        (("r/HEAD", "r/objects/x", "r/refs/x", "r/config"), ".git"),
        (("r/HEAD", "r/commondir", "r/config"), ".git"),
        (("r/head", "r/OBJECTS/x", "R/Refs/x", "r/config"), ".git"),
        (("r", "r/HEAD", "r/objects/x", "r/refs/x", "r/config"), ".git"),
        (("r/HEAD", "r/objects/x", "r/config"), ""),
        (("r/HEAD", "other/objects/x", "r/refs/x", "r/config"), ""),
        (("r/objects/x", "r/refs/x", "r/config"), ""),
        (("r/HEAD", "r/objects/x", "r/refs/x", "r/deep/config"), ""),
        (("r/HEAD", "r/objects/x", "r/refs/x", "r/hooks/deep/x"), ".git"),
        (("HEAD", "objects/x", "refs/x", "config"), ".git"),
        (("r/HEAD", "r/objects/x", "r/refs/x", "r/refs/.gitconfig"), ".gitconfig"),
        (("free/.git/HEAD", "free/.git/objects/x", "free/.git/refs/x", "free/.git/config"), ""),
    ],
)
def test_what_becomes_a_git_repository_with_one_call_is_protected(
    names: PathResolver, written: tuple[str, ...], protected_by: str
) -> None:
    targets = [names.resolve_readable(word) for word in written]
    rules = names.rules_for(targets[-1], targets)

    assert rules.protected_by == protected_by
    directory = written[-1].rpartition("/")[0].partition("/hooks")[0] or "."
    wanted = directory if protected_by == ".git" else ""
    assert (rules.git_directory, names.protected_repository(targets[-1], targets)) == (wanted, wanted)


@pytest.mark.parametrize(
    ("state_dir", "key", "is_closed"),
    [
        ("state", "", True),
        ("/two/state", "/two/state/x", True),
        ("/two/state", "", False),
        ("state", "/two/state/x", False),
        ("/two/sta", "/two/state/x", False),
    ],
)
def test_the_state_of_surehold_is_closed_in_its_own_root_alone(state_dir: str, key: str, is_closed: bool) -> None:
    policy = Policy(state_dir=state_dir)
    if not is_closed:
        policy.check_read("state/x", "state/x", key=key)
        return
    with pytest.raises(ProtectedPath) as refused:
        policy.check_read("state/x", "state/x", key=key)
    assert refused.value.path == (key or "state/x")
