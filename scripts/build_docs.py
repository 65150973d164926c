"""Build the site from the documents of the repository: `python scripts/build_docs.py DIRECTORY`.

The documents are plain Markdown that can be read in the repository too. They are collected into one tree, links between them
are turned into links of that tree, and Sphinx builds it; every warning is an error, and a dead link is a warning.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"
CHAPTERS = {
    "Start": ("start/host.md", "start/python.md", "start/team.md"),
    "Understand": ("concepts.md", "how-it-works.md", "faq.md", "comparison.md"),
    "Do": (
        "recipes.md",
        "clients.md",
        "approvals.md",
        "review.md",
        "history.md",
        "shell.md",
        "coverage.md",
        "acp.md",
        "frameworks.md",
        "fleet.md",
        "examples.md",
    ),
    "Reference": tuple(
        f"reference/{name}.md" for name in ("tools", "commands", "settings", "errors", "python", "wire")
    ),
    "Keep": ("../SECURITY.md", "stability.md", "upgrade.md", "decisions.md", "../CHANGELOG.md"),
    "Develop": (
        *("../ARCHITECTURE.md", "../CONTRIBUTING.md", "contract.md", "conformance.md", "benchmarks.md"),
        *("dependencies.md", "../RELEASING.md"),
    ),
}
"""The pages of the site, below `docs/`, in the order of the menu; what is there beside them comes last."""
_FENCE = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")


def chapters() -> dict[str, list[Path]]:
    """Return every page beside the home, by the chapter of the menu that it is in."""
    found = {chapter: [Path(os.path.normpath(DOCS / name)) for name in names] for chapter, names in CHAPTERS.items()}
    named = {DOCS / "index.md", *(page for names in found.values() for page in names)}
    if others := sorted(set(DOCS.rglob("*.md")) - named):
        found["More"] = others
    return found


def pages() -> list[Path]:
    """Return every document that is a page, the home first."""
    return [DOCS / "index.md", *(page for names in chapters().values() for page in names)]


def collect(folder: Path) -> None:
    """Write every page into a folder, with links that lead to the other pages there, and what they show."""
    known = {page: folder / _name_on_site(page) for page in pages()}
    for page, copy in known.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(_with_links(page, known), encoding="utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as home:
        home.write("\n" + "\n".join(_menu()))
    shutil.copytree(DOCS / "pictures", folder / "pictures")
    (folder / "_static").mkdir()
    shutil.copy(DOCS / "site" / "site.css", folder / "_static")
    shutil.copy(DOCS / "site" / "conf.py", folder)


def _name_on_site(page: Path) -> str:
    return str(page.relative_to(DOCS)) if page.is_relative_to(DOCS) else page.name.lower()


def _menu() -> Iterator[str]:
    for chapter, names in chapters().items():
        rows = [_name_on_site(page).removesuffix(".md") for page in names]
        yield "\n".join(["```{toctree}", ":hidden:", f":caption: {chapter}", "", *rows, "```", ""])


def _with_links(page: Path, known: dict[Path, Path]) -> str:
    """Return the text of a page; what is in the repository but not on the site is named without a link."""

    def turn(match: re.Match[str]) -> str:
        picture, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        if picture or not target:
            return match[0]
        file = Path(os.path.normpath(page.parent / target))
        if file not in known and file.exists():
            return text
        found = known.get(file, file)
        return f"[{text}]({os.path.relpath(found, known[page].parent)}{anchor})"

    text, done, parts = page.read_text(encoding="utf-8"), 0, list[str]()
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(turn, text[done : fence.start()]), fence[0]]
        done = fence.end()
    return "".join([*parts, _LINK.sub(turn, text[done:])])


def _loaded_from_elsewhere(site: Path) -> Iterator[str]:
    """Yield the addresses that a browser would ask by itself; links that a reader may follow are not meant."""
    for file in (*site.rglob("*.html"), *site.rglob("*.css")):
        text = file.read_text(encoding="utf-8")
        yield from re.findall(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)="((?:https?:)?//[^"]*)""", text)
        yield from re.findall(r"""(?:@import|url\()\s*["']?((?:https?:)?//[^"')]*)""", text)


def main(target: Path) -> int:
    from sphinx.cmd.build import main as build

    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "source")
        source.mkdir()
        collect(source)
        shutil.rmtree(target, ignore_errors=True)
        made = Path(place, "site")
        failed = build(["-q", "-E", "-W", "--keep-going", "-d", str(Path(place, "trees")), str(source), str(made)])
        if loads := sorted(set(_loaded_from_elsewhere(made))):
            print(f"The site would load from elsewhere: {', '.join(loads)}.", file=sys.stderr)
            return 1
        if not failed:
            shutil.copytree(made, target, ignore=shutil.ignore_patterns(".buildinfo", "objects.inv"))
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
