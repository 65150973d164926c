"""The site: every page is generated from what there is, names all of it, and leads nowhere that does not exist."""

import os
import re
from pathlib import Path

import pytest
from build_docs import DOCS, PROJECT, collect, pages
from reference import PAGES as GENERATED
from reference import VARIABLES, generate
from reference_python import SOURCE

import surehold
from spec.marks import requirement
from surehold import aio, errors
from surehold.errors import SureholdError
from surehold.front.cli.command import COMMAND_MODULES, load_command
from surehold.front.cli.config.configuration import SETTINGS
from surehold.library.families import list_tools
from surehold.library.session import AgentSession
from surehold.library.workspace import AgentWorkspace

PAGES = pages()
_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def reference(name: str) -> str:
    return text_of(DOCS / "reference" / f"{name}.md")


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#{1,4} (.+)$", _FENCE.sub("", text_of(page)), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@requirement("front:docs:reference")
@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_what_the_source_defines(name: str) -> None:
    assert text_of(DOCS / f"{name}.md") == generate(name), "run `make fix`"


@requirement("front:docs:reference")
def test_every_tool_is_in_the_reference_with_each_of_its_arguments() -> None:
    for page, heading in (("tools", "### "), ("wire", "### Result of ")):
        chapters = re.split(r"^(?=### )", reference(page), flags=re.MULTILINE)
        for tool in list_tools("all"):
            (chapter,) = [one for one in chapters if re.match(rf"{heading}{tool.name}(?: \(claude\))?\n", one)]
            if page == "tools":
                assert [name for name in tool.input_schema["properties"] if f"| `{name}` |" not in chapter] == []


@requirement("front:docs:reference")
def test_every_command_action_and_option_is_in_the_reference() -> None:
    text = reference("commands")
    for name in COMMAND_MODULES:
        command = load_command(name)
        chapter = text.partition(f"\n### surehold {name}\n")[2].partition("\n### ")[0]
        assert command.help in chapter
        assert [one.name for one in command.actions if f"#### surehold {name} {one.name}\n" not in chapter] == []
        given = [one for row in command.arguments for one in (row if isinstance(row, tuple) else (row,))]
        options = [word for one in given if one.settings.get("help") != "==SUPPRESS==" for word in one.names]
        assert [word for word in options if word.startswith("--") and word not in chapter] == []


@requirement("front:docs:reference")
def test_every_setting_and_variable_is_in_the_reference() -> None:
    used = {name for file in SOURCE.rglob("*.py") for name in re.findall(r"SUREHOLD_[A-Z_]+", text_of(file))}

    assert used == set(VARIABLES)
    assert [one.name for one in SETTINGS if f"| `{one.name}` |" not in reference("settings")] == []
    assert [name for name in VARIABLES if f"| `{name}` |" not in reference("settings")] == []


@requirement("front:docs:reference")
def test_every_error_class_kind_and_code_is_in_the_reference() -> None:
    text = reference("errors")
    found = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, SureholdError)]

    assert len(found) > 40
    for one in found:
        assert f"\n### {one.__name__}\n" in text
        assert one is SureholdError or f"`{one.__name__}` | `{one.kind}` | {one.code} |" in text


@requirement("front:docs:reference")
def test_every_public_python_name_and_method_is_in_the_reference() -> None:
    text = reference("python")

    assert [name for name in surehold.__all__ if f"\n## {name}\n" not in text] == []
    assert [name for name in aio.__all__ if f"`{name}`" not in text] == []
    for cls in (AgentSession, AgentWorkspace):
        methods = [name for name in dir(cls) if not name.startswith("_")]
        assert [name for name in methods if not re.search(rf"[.`]{name}\b", text)] == []


@requirement("front:docs:reference")
def test_classes_are_called_in_the_reference_as_a_program_imports_them() -> None:
    assert re.findall(r"\bAgent(?:Session|Workspace)\b", reference("python")) == []
    assert "| `hash` | `str` |" in reference("python").partition("\n## ReplaceLine\n")[2].partition("\n## ")[0]


@requirement("front:docs:site")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_bar_is_escaped_in_tables_only(page: Path) -> None:
    lines = _FENCE.sub("", text_of(page)).splitlines()

    assert [line for line in lines if "\\|" in line and not line.startswith("|")] == []


@requirement("front:docs:reference")
def test_every_adapter_is_in_the_reference_with_its_public_names() -> None:
    text, modules = reference("python"), {file.stem: text_of(file) for file in (SOURCE / "adapters").glob("*.py")}
    frameworks = [name for name, source in modules.items() if "import_framework(" in source and name != "frameworks"]

    assert len(frameworks) >= 6
    for name in (*frameworks, "functions"):
        chapter = text.partition(f"\n### surehold.adapters.{name}\n")[2].partition("\n### ")[0]
        public = re.findall(r"^(?:async def|def|class) ([a-zA-Z]\w+)", modules[name], re.MULTILINE)
        assert [one for one in public if f"\n- `{one}" not in chapter] == []


@requirement("front:docs:site")
@pytest.mark.parametrize("page", [*PAGES, PROJECT / "README.md"], ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    dead = list[str]()
    for link in _LINK.findall(_FENCE.sub("", text_of(page))):
        if re.match(r"\w+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = Path(os.path.normpath(page.parent / target)) if target else page
        if not file.exists() or (anchor and anchor not in anchors_of(file)):
            dead.append(link)

    assert dead == []


@requirement("front:docs:site")
def test_what_is_collected_for_the_site_links_only_to_what_is_there(tmp_path: Path) -> None:
    collect(tmp_path)

    copies = sorted(tmp_path.rglob("*.md"))
    assert len(copies) == len(PAGES) == len(set(PAGES))
    for copy in copies:
        links = [link.partition("#")[0] for link in _LINK.findall(_FENCE.sub("", text_of(copy)))]
        inner = [link for link in links if link and not re.match(r"\w+:", link)]
        assert [link for link in inner if not (copy.parent / link).exists()] == []
    menu = re.findall(r"^\w[\w/.-]*$", text_of(tmp_path / "index.md").partition("```{toctree}")[2], re.MULTILINE)
    assert sorted(menu) == sorted(str(copy.relative_to(tmp_path))[:-3] for copy in copies if copy.stem != "index")


@requirement("front:docs:site")
def test_nothing_that_a_page_shows_is_loaded_from_elsewhere() -> None:
    shown = [picture for page in PAGES for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)|<img[^>]*>", text_of(page))]
    styles = text_of(DOCS / "site" / "site.css") + text_of(DOCS / "site" / "conf.py")

    assert shown
    assert [picture for picture in shown if "//" in picture] == []
    assert "//" not in styles
    assert [
        one for one in (DOCS / "pictures").glob("*.svg") if re.search(r"(?:href|src)=|@import|url\(http", text_of(one))
    ] == []
