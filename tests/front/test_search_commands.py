"""grep and glob, for people."""

import os

import pytest

from front.shell import Shell
from spec.marks import requirement


@pytest.fixture
def tree(shell: Shell) -> Shell:
    shell.write("a.py", "one\nneedle = 1\nthree\n")
    shell.write("sub/b.txt", "Needle needle\n")
    shell.write("sub/c.md", "nothing\n")
    shell.write("node_modules/d.py", "needle\n")
    return shell


@requirement("front:cli:grep")
def test_grep_in_a_pipe_prints_path_line_and_text(tree: Shell) -> None:
    said = tree("grep", "needle")

    assert (said.code, said.out) == (0, "a.py:2:needle = 1\nsub/b.txt:1:Needle needle\n")
    assert said.err == "2 lines in 2 files; 3 files searched.\n"
    assert tree("grep", "needle", "sub").out == "sub/b.txt:1:Needle needle\n"
    assert tree("grep", "needle", "a.py", "sub").out == "a.py:2:needle = 1\nsub/b.txt:1:Needle needle\n"


@requirement("front:cli:grep")
def test_grep_takes_the_usual_options(tree: Shell) -> None:
    assert tree("grep", "one", "-C", "1").out == "a.py:1:one\na.py-2-needle = 1\n"
    assert tree("grep", "NEEDLE", "-i", "--type", "py").out == "a.py:2:needle = 1\n"
    assert tree("grep", "needle", "--glob", "*.txt").out == "sub/b.txt:1:Needle needle\n"
    assert tree("grep", "needle", "--glob", "!*.txt").out == "a.py:2:needle = 1\n"
    assert tree("grep", "needle", "-l").out == "a.py\nsub/b.txt\n"
    assert tree("grep", "needle", "-ic").out == "a.py:1\nsub/b.txt:2\n"
    assert tree("grep", "one.needle", "-U", "-c").out == "a.py:1\n"
    assert tree("grep", "= 1", "-F").out == "a.py:2:needle = 1\n"
    assert tree("grep", "needle(?= =)").out == "a.py:2:needle = 1\n"
    assert tree("grep", "needle", "-l", "--ignored").out == "a.py\nnode_modules/d.py\nsub/b.txt\n"


@requirement("front:cli:grep")
def test_grep_that_finds_nothing_exits_1_and_says_what_it_left_out(tree: Shell) -> None:
    tree.write(".gitignore", "out/\n")
    tree.write("out/e.txt", "rare\n")

    said = tree("grep", "rare")

    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(
        "Nothing found; 4 files searched.\n0 matches; 1 ignored or build-directory file matches: out/e.txt."
    )


@requirement("front:cli:grep")
def test_the_exit_code_of_grep_tells_whether_any_path_had_a_match(tree: Shell) -> None:
    assert [tree("grep", "needle", *paths).code for paths in (["a.py", "sub/c.md"], ["sub/c.md", "a.py"])] == [0, 0]
    assert tree.json("grep", "rare", code=1)["total_files"] == 0
    assert "The exit code is 1 if nothing matches." in tree("grep", "--help").out


@requirement("front:cli:grep")
def test_grep_accepts_the_options_that_habit_adds(tree: Shell) -> None:
    assert (
        tree("grep", "-rn", "needle", ".").out == tree("grep", "-n", "needle", "-r").out == tree("grep", "needle").out
    )


@requirement("front:cli:grep")
def test_grep_refuses_what_it_cannot_use(tree: Shell) -> None:
    assert tree("grep", "needle(").code == 1
    assert "Unknown file type `pyton`." in tree("grep", "x", "--type", "pyton").err
    assert tree("grep", "x", "missing").code == 1
    assert tree("grep").code == 2
    assert tree("grep", "x", "-C", "many").code == 2


@requirement("front:cli:grep")
def test_grep_as_json_has_rows_and_totals(tree: Shell) -> None:
    assert tree.json("grep", "needle", "a.py") == {
        "root": "a.py",
        "files": [{"path": "a.py", "count": 1}],
        "rows": [{"path": "a.py", "line": 2, "text": "needle = 1", "is_match": True}],
        "total_files": 1,
        "total_lines": 1,
        "total_matches": 1,
        "files_searched": 1,
        "complete": True,
        "truncated": False,
        "notes": [],
    }
    assert [each["root"] for each in tree.json("grep", "needle", "a.py", "sub", "-l")] == ["a.py", "sub"]


@requirement("front:cli:grep")
def test_grep_on_a_terminal_groups_by_file_and_paints_the_matches(tree: Shell) -> None:
    code, shown = tree.terminal("grep", "needle", "--type", "py", "--type", "txt")

    assert code == 0
    assert shown == (
        "\x1b[1;36ma.py\x1b[0m\n"
        "\x1b[32m2:\x1b[0m \x1b[1;31mneedle\x1b[0m = 1\n"
        "\n"
        "\x1b[1;36msub/b.txt\x1b[0m\n"
        "\x1b[32m1:\x1b[0m Needle \x1b[1;31mneedle\x1b[0m\n"
        "\x1b[2m2 lines in 2 files; 2 files searched.\x1b[0m\n"
    )


@requirement("front:cli:glob")
def test_glob_prints_the_newest_first(tree: Shell) -> None:
    for age, name in enumerate(("sub/c.md", "a.py", "sub/b.txt", "node_modules/d.py")):
        os.utime(tree.root / name, (1_000_000 - age, 1_000_000 - age))

    said = tree("glob", "**/*")

    assert (said.code, said.out) == (0, "sub/c.md\na.py\nsub/b.txt\nnode_modules/d.py\n")
    assert said.err == "4 files.\n"
    assert tree("glob", "*.{md,txt}", "sub").out == "sub/c.md\nsub/b.txt\n"
    assert tree.json("glob", "*.py") == {"files": ["a.py"], "total": 1, "complete": True, "ignored": 0, "notes": []}


@requirement("front:cli:glob")
def test_glob_that_finds_nothing_is_not_a_failure_and_says_where_else_to_look(tree: Shell) -> None:
    said = tree("glob", "*.md")

    assert (said.code, said.out) == (0, "")
    assert said.err == "Nothing found.\n`*.md` looks only in the directory itself; `**/*.md` matches 1.\n"
    assert tree("glob", "a[").code == 1
    assert tree("glob", "*", "missing").code == 1


def test_grep_without_a_pattern_names_only_what_is_missing(tree: Shell) -> None:
    said = tree("grep")

    assert "the following arguments are required: PATTERN\n" in said.err
