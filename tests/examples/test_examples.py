"""What the README and `make run` show a newcomer is run here, as a newcomer runs it."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

from spec.marks import requirement
from workspaces import make_bench

PROJECT = Path(__file__).parents[2]


def run(script: str, directory: Path) -> list[str]:
    """Run an example in an empty directory of its own and return the lines that it prints."""
    work, temporary = directory / "work", directory / "tmp"
    work.mkdir()
    temporary.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "COV_", "PYTEST"))}
    done = subprocess.run(
        (sys.executable, "-X", "utf8", PROJECT / "examples" / script),
        cwd=work,
        env={**kept, "XDG_STATE_HOME": str(directory / "state"), "TMPDIR": str(temporary), "SUREHOLD_DEMO_FAST": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(work.iterdir()) == []
    assert list(temporary.iterdir()) == []
    return done.stdout.splitlines()


@requirement("front:make:run")
def test_the_demo_plays_its_five_scenes_and_leaves_nothing_behind(tmp_path: Path) -> None:
    lines = run("demo.py", tmp_path)

    assert [line for line in lines if re.match(r"\d  ", line)] == [
        "1  An edit changes its own bytes and no others",
        "2  Two processes race for one file",
        "3  kill -9 in the middle of a change to three files",
        "4  Everything is in the log, the refused and the interrupted too",
        "5  The first edit is taken back, the later ones stay",
    ]
    assert [line for line in lines if line.startswith("  ✓ ")] == [
        "  ✓ 123 bytes, 1 is different: the 5 that became an 8.",
        "  ✓ The refusal says that the same edit still fits, and which version to name.",
        "  ✓ Both edits are in the file. Nobody was overwritten unseen.",
        "  ✓ Half done: one file is new, two are old, and staged files lie about.",
        "  ✓ All three are as they were, byte for byte. All or nothing; nothing lies about.",
        "  ✓ Tea costs 2.50 again; coffee and the opening hours kept their edits.",
        "  ✓ Every entry of the log fits the one before it, and every kept byte is there.",
    ]
    assert not (tmp_path / "state").exists()


def test_the_demo_shows_the_refusal_the_log_and_the_verdict_without_colour(tmp_path: Path) -> None:
    text = "\n".join(run("demo.py", tmp_path))

    assert re.search(r"(alice|bob): refused, stale_file: `menu.txt` is not the version you saw\.", text)
    assert re.search(r"^\S+ +\w{8} +carol +patch +shop/cart\.py ", text, re.MULTILINE)
    assert re.search(r"^Intact: 8 entries", text, re.MULTILINE)
    assert "\x1b" not in text


@requirement("front:library:open_workspace")
def test_the_first_steps_print_their_diff_and_tidy_up(tmp_path: Path) -> None:
    assert run("first_steps.py", tmp_path) == [
        "--- hello.txt",
        "+++ hello.txt",
        "@@ -1 +1 @@",
        "-Hello, wrold!",
        "+Hello, world!",
        "",
    ]


def test_the_readme_shows_the_first_steps_as_they_are() -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)

    assert blocks == [(PROJECT / "examples" / "first_steps.py").read_text("utf-8")]


def test_every_file_that_the_documents_link_to_exists() -> None:
    missing = [
        (page.name, link)
        for page in [*PROJECT.glob("*.md"), *PROJECT.glob("docs/*.md")]
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
        if not (page.parent / link).exists()
    ]

    assert missing == []


def test_the_architecture_page_lists_every_module() -> None:
    page = (PROJECT / "ARCHITECTURE.md").read_text("utf-8")
    tree = page.partition("\nsrc/surehold/\n")[2].partition("```")[0]
    listed, folders = list[str](), list[str]()
    for line in tree.splitlines():
        indent, name = re.fullmatch(r"( +)(\S+).*", line, re.DOTALL).groups()  # pyright: ignore[reportOptionalMemberAccess]
        folders = [*folders[: len(indent) // 2 - 1], name]
        if name.endswith(".py"):
            listed.append("".join(folders))
    source = PROJECT / "src" / "surehold"
    modules = [path.relative_to(source) for path in source.rglob("*.py")]

    assert sorted(listed) == sorted(str(m) for m in modules if m.name != "__init__.py" or len(m.parts) == 1)


def test_the_tool_that_the_contributing_page_shows_works(tmp_path: Path) -> None:
    page = (PROJECT / "CONTRIBUTING.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "replace_text.py").write_text(blocks[0], encoding="utf-8")
    shown = runpy.run_path(str(tmp_path / "replace_text.py"))
    bench = make_bench("memory", "memory", tmp_path)
    bench.put("a.txt", b"one two\n")
    session = bench.workspace.session()
    (replace_text,) = shown["TOOLS"]

    answers = [replace_text.call(session, {"path": "a.txt", "old": "two", "new": "2"}) for _ in range(2)]

    assert [answer.ok for answer in answers] == [True, False]
    assert answers[0].data["data"]["diff"] == "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one two\n+one 2\n"
    assert answers[1].data["error"]["kind"] == "old_text_not_found"
    assert bench.get("a.txt") == b"one 2\n"
