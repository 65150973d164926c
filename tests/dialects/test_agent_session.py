import ast
import inspect
import pydoc
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold import DeleteLine, Limits, ReplaceLine, Settings, StringEdit, open_workspace, tools_for
from surehold.errors import InvalidArgument, StaleFile
from surehold.library.async_session import AsyncSession
from surehold.library.families import FAMILIES, NAMESPACES, list_tools, tool_named, tools_of
from surehold.library.session import AgentSession
from surehold.tools.export import export_tools
from tool_names import FAMILY_TOOLS

WRITER = runpy.run_path(str(Path(__file__).parents[2] / "scripts/write_stubs.py"))
STUBS = WRITER["STUBS"]
METHODS = {"edit": "edit_lines"}
"""`Session.edit` quotes texts; the tool `edit` names lines."""
NAMESPACED = {family: {tool.name for tool in tools_of(family)} for family in NAMESPACES}
DIRECT = [tool for tool in tools_of("all") if not any(tool.name in names for names in NAMESPACED.values())]


@pytest.fixture
def session(tmp_path: Path) -> AgentSession:
    (tmp_path / "root").mkdir()
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    return open_workspace(tmp_path / "root", settings=settings).session(agent="ada")


@requirement("front:library:tools", "promise:product:one_definition")
@pytest.mark.parametrize("tool", tools_of("all"), ids=lambda tool: tool.name)
def test_a_session_has_a_method_for_every_tool_that_takes_what_the_tool_takes(
    session: AgentSession, tool: object
) -> None:
    name, params = str(getattr(tool, "name")), getattr(tool, "params")  # noqa: B009 - tools of any type
    family = next((family for family, names in NAMESPACED.items() if name in names), "")
    home = getattr(session, family) if family else session
    method = inspect.signature(getattr(home, METHODS.get(name, name)))
    result = getattr(tool, "result")  # noqa: B009

    keys = set[str]() if getattr(tool, "hints").read_only else {"idempotency_key"}  # noqa: B009
    assert set(method.parameters) - {"self"} == set(params.model_fields) | keys
    assert method.return_annotation in (result, result.__name__)  # by name where the family is loaded later
    for field, info in params.model_fields.items():
        given = method.parameters[field].default
        if field == "expected_sha256" and "expectedSha256" in params.DEMANDED:
            assert given is inspect.Parameter.empty
        elif not info.is_required() and not info.default_factory:
            assert given == info.default


def test_the_overview_of_commands_has_the_sentences_of_their_definitions() -> None:
    """`make fix` writes them again."""
    assert WRITER["COMMANDS"].read_text(encoding="utf-8") == WRITER["command_sentences"]()


def test_tools_are_listed_as_they_are() -> None:
    """`make fix` writes the list again."""
    assert WRITER["LISTINGS"].read_text(encoding="utf-8") == WRITER["tool_listings"]()
    for loaded, listed in zip(tools_of("all"), list_tools("all"), strict=True):
        assert export_tools([listed], "mcp") == export_tools([loaded], "mcp")
        assert (listed.hints, listed.guide, listed.brief) == (loaded.hints, loaded.guide, loaded.brief)
        assert listed.load() is loaded


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_type_checkers_are_shown_the_names_and_methods_that_there_are(stub: Path) -> None:
    """`make fix` writes the stubs again."""
    written, expected = stub.read_text(encoding="utf-8"), STUBS[stub]()

    assert set(map(ast.dump, ast.parse(written).body)) == set(map(ast.dump, ast.parse(expected).body))


def test_methods_can_be_listed_and_have_their_help(session: AgentSession) -> None:
    methods = {METHODS.get(tool.name, tool.name) for tool in DIRECT}

    assert methods <= set(dir(session))
    assert methods <= set(dir(AgentSession))
    assert {"Read", "Edit"} <= set(dir(session.claude))
    assert {"claude", "multi_edit"} <= set(dir(session))
    assert str(inspect.signature(session.multi_edit.read_text_file)) == (
        "(path: str, *, line: int | None = None, limit: int | None = None)"
        " -> surehold.dialects.multi_edit.text_file.ReadTextResult"
    )
    help_text = pydoc.plain(pydoc.render_doc(session.claude))
    assert "Read(self, file_path: str, *, offset: int | None = 1" in help_text
    assert tool_named("Read").description.partition("\n")[0] in help_text


@requirement("front:library:names")
def test_a_session_lists_one_method_for_each_default_tool_and_no_machinery(session: AgentSession) -> None:
    tools = {METHODS.get(tool.name, tool.name) for tool in DIRECT}
    own = {"turn", "undo", "redo", "answer", "notify_compaction"}
    facts = {"agent", "id", "turn_id", "workspace", "claude", "multi_edit"}

    def listed(thing: object) -> set[str]:
        return {name for name in dir(thing) if not name.startswith("_")}

    assert listed(session) == tools | own | facts
    assert listed(AgentSession) == tools | own | {"claude", "multi_edit"}
    assert listed(AsyncSession(session)) == listed(session) | {"plain"}
    assert all(hasattr(session, name) for name in dir(session))


@requirement("front:library:namespaces")
def test_other_vocabularies_are_namespaces_and_earlier_names_warn(session: AgentSession) -> None:
    session.create_file("a.txt", "one\n")
    path = str(Path(session.workspace.roots[0]) / "a.txt")

    assert session.claude.Read(path).sha256
    assert session.claude.Edit(path, "one", "two").change_id
    assert session.multi_edit.read_text_file(path).content == "two\n"
    with pytest.warns(DeprecationWarning, match=r"session\.claude\.Read"):
        assert getattr(session, "claude_read")(path)  # noqa: B009 - a type checker does not know it
    with pytest.warns(DeprecationWarning, match=r"session\.multi_edit\.read_text_file"):
        assert getattr(session, "read_text_file")(path)  # noqa: B009


def test_a_method_that_does_not_exist_is_an_attribute_error(session: AgentSession) -> None:
    assert not hasattr(session, "no_such_tool")
    with pytest.raises(TypeError, match=r"^read_file\(\): missing a required argument: 'path'"):
        getattr(session, "read_file")()  # noqa: B009 - a type checker would refuse it
    with pytest.raises(InvalidArgument, match="start_line"):
        getattr(session, "read_file")("a", start_line="x")  # noqa: B009 - the same


@pytest.mark.parametrize("family", FAMILIES)
def test_a_method_imports_only_its_own_family(family: str) -> None:
    use = {"anchored": "edit_lines", "files": "glob", "multi_edit": "multi_edit.fget", "claude": "claude.fget"}
    code = (
        "import sys\n"
        "from surehold.library.session import AgentSession\n"
        f"used = AgentSession.{use[family]}\n"
        "used(None) if used.__name__ in ('claude', 'multi_edit') else used\n"
        "print(*sorted(name.split('.')[2] for name in sys.modules"
        " if name.startswith('surehold.dialects.') and name.count('.') == 2))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()

    assert set(loaded) <= {"shared", family} | ({"anchored"} if family == "files" else set())


def test_the_tools_work_from_python_with_types(session: AgentSession) -> None:
    made = session.create_file("a/b.py", "x = 1\ny = 2\n")
    read = session.read_file("a/b.py", hashes=True)
    edited = session.edit_file(
        "a/b.py", [("x = 1", "x = 3"), StringEdit(old="y", new="z")], expected_sha256=read.sha256
    )
    wrote = session.write_file("a/b.py", "new\n", expected_sha256=edited.after_sha256)
    moved = session.move_file("a/b.py", "c.py", expected_sha256=wrote.after_sha256)
    patched = session.apply_patch("*** Begin Patch\n*** Update File: c.py\n@@\n-new\n+newer\n*** End Patch\n")
    listed = session.list_directory()
    globbed = session.glob("**/*.py")
    found = session.search_files("newer")
    gone = session.delete_file("c.py", expected_sha256=found.files[0].sha256)
    back = session.restore_file(gone.trash_id)

    assert (made.sha256, moved.sha256) == (read.sha256, wrote.after_sha256)
    assert (edited.sha256, wrote.sha256, gone.sha256) == (
        edited.after_sha256,
        wrote.after_sha256,
        found.files[0].sha256,
    )
    assert "sha256" not in edited.model_dump()  # the wire keeps its own names
    assert [row.operation for row in patched.changed_files] == ["update"]
    assert [row["relativePath"] for row in listed.entries] == ["a", "c.py"]
    assert [row.path for row in globbed.matches] == ["c.py"]
    assert back.path == "c.py"


def test_a_program_is_given_a_file_in_one_piece(session: AgentSession) -> None:
    text = "a line of some length\n" * 10_000
    session.create_file("a", text)

    assert session.read_file("a", max_bytes=1 << 30).content == text


def test_a_refusal_is_raised(session: AgentSession) -> None:
    session.create_file("a", "x\n")

    with pytest.raises(StaleFile):
        session.write_file("a", "y\n", expected_sha256="0" * 64)


def test_a_tool_is_called_by_name_as_a_model_does(session: AgentSession) -> None:
    answer = session.answer("create_file", {"path": "a", "content": "x\n"})
    refused = session.answer("create_file", {"path": "a", "content": "x\n"})

    assert (answer.ok, refused.ok, refused.data["error"]["kind"]) == (True, False, "already_exists")
    with pytest.raises(InvalidArgument):
        session.answer("no_such_tool", {})


@requirement("front:library:adapters", "promise:product:one_definition")
def test_tool_lists_for_others_come_from_the_same_definitions() -> None:
    tools = tools_of()
    openai, anthropic, mcp = tools_for("openai-responses"), tools_for("anthropic"), tools_for("mcp")

    assert [row["function"]["parameters"] for row in tools_for("openai-chat")] == [one.input_schema for one in tools]
    assert [row["name"] for row in tools_for("mcp", "claude")] == [tool.name for tool in tools_of("claude")]
    with pytest.raises(InvalidArgument, match="openai-chat"):
        tools_for("gemini")  # type: ignore[arg-type]
    assert [row["parameters"] for row in openai] == [tool.input_schema for tool in tools]
    assert [row["input_schema"] for row in anthropic] == [tool.input_schema for tool in tools]
    assert [row["inputSchema"] for row in mcp] == [tool.input_schema for tool in tools]
    assert {row["type"] for row in openai} == {"function"}


@requirement("host:schema:described")
def test_limits_defaults_and_units_stand_in_the_descriptions() -> None:
    tools = {tool.name: tool for tool in tools_of("files")}

    assert "2,000 lines and 40,000 characters" in tools["read_file"].description
    for tool in tools.values():
        assert tool.description
        for name, field in tool.input_schema["properties"].items():
            limited = {"minimum", "maximum"} & set(field)
            assert not limited or "description" in field or name.startswith("max"), (tool.name, name)


def test_families_are_named_and_an_unknown_one_is_refused_with_the_list() -> None:
    assert [tool.name for tool in tools_of("files")] == sorted(tool.name for tool in tools_of("files"))
    for family, names in FAMILY_TOOLS.items():
        assert {tool.name for tool in tools_of(family)} == names
    for wrong in ("fils", "", " , ", "files,claud"):
        with pytest.raises(InvalidArgument, match="family"):
            tools_of(wrong)
    assert set(FAMILIES) == set(FAMILY_TOOLS)


def test_whoever_is_asked_the_session_remembers_what_it_was_given(session: AgentSession) -> None:
    (Path(session.workspace.roots[0]) / "a.txt").write_bytes(b"x\n")
    one, other = session.with_approver(None), session.with_approver(None)
    one.deliveries.says_unchanged = True

    assert one.claude.Read("a.txt").type == "text"
    assert other.claude.Read("a.txt").type == "file_unchanged"
    other.notify_compaction()
    assert one.claude.Read("a.txt").type == "text"


@requirement("front:library:results")
def test_every_modifying_result_has_the_change_and_the_bytes_after_it(session: AgentSession) -> None:
    modifying = {tool.result for tool in tools_of("all") if not tool.hints.read_only}
    patched = session.apply_patch("*** Begin Patch\n*** Add File: p.txt\n+p\n*** End Patch\n")
    receipt = session.create("q.txt", "p\n")

    assert modifying
    for result in modifying:
        assert {"sha256", "change_id"} <= {*result.model_fields, *dir(result)}, result
    assert patched.sha256 == {"p.txt": patched.changed_files[0].sha256}
    assert patched.changed_files[0].sha256 == receipt.sha256 == session.read_file("p.txt").sha256
    assert patched.change_id
    changed = session.multi_edit.multi_edit_text_file(f"{session.workspace.roots[0]}/p.txt", [("p", "r")])
    assert (changed.sha256, bool(changed.change_id)) == (session.read_file("p.txt").sha256, True)


@requirement("front:library:names")
def test_the_public_names_are_listed_before_they_are_used() -> None:
    code = "import surehold; print({*surehold.__all__} <= {*dir(surehold)}, 'Workspace' in vars(surehold))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout == "True False\n"


@requirement("front:library:names")
def test_the_public_modules_are_there_without_being_imported() -> None:
    code = "import surehold; print(surehold.aio.__name__, surehold.adapters.__name__, 'aio' in dir(surehold), '_HOMES' in dir(surehold))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout == "surehold.aio surehold.adapters True False\n"


@requirement("front:library:wrong_values")
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"allow": "src/**"}, "The setting `allow` must be a list of patterns."),
        ({"deny": "secret.txt"}, "The setting `deny` must be a list of patterns."),
        ({"protected": "x"}, "The setting `protected` must be a list of patterns."),
        ({"ask": 5}, "The setting `ask` must be a list of patterns."),
        ({"unprotected": [5]}, "The setting `unprotected` must be a list of patterns, each of them text."),
        ({"limits": 3}, "The setting `limits` must be a `Limits`."),
        ({"gate": "x"}, "The setting `gate` must be a `ReadGateSettings`."),
        ({"approver": 5}, "The setting `approver` must be a function."),
        ({"state_dir": 3}, "The setting `state_dir` must be a path."),
        ({"state": 3}, "The setting `state` must be a text."),
        ({"blobs": Path("large")}, "The setting `blobs` must be a text."),
        ({"detector": 3}, "The setting `detector` must be a function."),
        ({"editor": 3}, "The setting `editor` must have `read_text` and `write_text`."),
        ({"recover_on_open": "no"}, "The setting `recover_on_open` must be True or False."),
    ],
)
def test_a_wrong_setting_is_refused_at_once(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Settings(**wrong)

    assert (refused.value.message, refused.value.reason) == (told, "bad_setting")


@requirement("front:library:wrong_values")
@pytest.mark.parametrize("value", [-5, "5", None, True, float("nan"), float("inf")])
def test_a_limit_is_a_number(value: Any) -> None:
    for name in ("max_file_bytes", "session_idle", "lock_timeout", "fence", "sighting_bytes"):
        with pytest.raises(InvalidArgument, match=f"The limit `{name}` must be a number that is not below zero"):
            Limits(**{name: value})
    assert Settings(deny=["a"], ask=iter(["b"])).ask == ("b",)  # type: ignore[arg-type] # any iterable will do


@requirement("front:library:wrong_values")
def test_what_the_schema_of_a_tool_takes_its_method_takes_too(session: AgentSession) -> None:
    session.create("a.txt", "one\ntwo\nthree\n")
    known = session.read_file(Path("a.txt")).sha256  # type: ignore[arg-type]

    edited = session.edit_file(Path("a.txt"), [{"oldText": "one", "newText": "1"}], expected_sha256=known)  # type: ignore[list-item,arg-type]
    path = f"{session.workspace.roots[0]}/a.txt"
    session.multi_edit.multi_edit_text_file(path, [{"old_string": "two", "new_string": "2"}])  # type: ignore[list-item]
    shown = session.read_file("a.txt", hashes=True).content or ""
    anchor = shown.splitlines()[2].partition("|")[0]
    session.edit_lines("a.txt", [{"op": "replace_line", "hash": anchor, "content": "3"}])  # type: ignore[list-item]

    assert edited.change_id
    assert session.read_file("a.txt").content == "1\n2\n3\n"


@requirement("front:library:tools")
def test_the_tool_edit_can_be_called_by_its_name_too(session: AgentSession) -> None:
    session.create_file("a.txt", "one\ntwo\nthree\n")
    rows = (session.read_file("a.txt", hashes=True).content or "").splitlines()
    one, two, three = (row.partition("|")[0] for row in rows)
    plain: Any = [{"op": "replace_line", "hash": one, "content": "1"}]
    typed = session.edit("a.txt", [ReplaceLine(hash=two, content="2"), DeleteLine(hash=three)], reason="shorter")
    named = session.edit("a.txt", operations=plain, safety_check="warn", idempotency_key="once")
    again = session.edit("a.txt", operations=plain, safety_check="warn", idempotency_key="once")
    quoted = session.edit("a.txt", ("1", "uno"), ("2", "dos"))

    assert (typed.operations_applied, typed.lines_after) == (2, 2)
    assert named.change_id == again.change_id
    assert typed.change_id not in ("", named.change_id)
    assert session.read_file("a.txt").sha256 == quoted.sha256
    assert session.read_file("a.txt").content == "uno\ndos\n"
    with pytest.raises(InvalidArgument, match="either quoted texts or operations"):
        session.edit("a.txt", ("uno", "1"), operations=plain)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


@requirement("front:library:wrong_values")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [(5, {"path": "a.txt"}), ("read_file", 5), ("read_file", None), ("read_file", '{"path": "a"}')],
)
def test_a_call_of_another_kind_is_refused_in_words(session: AgentSession, name: Any, arguments: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"`(name|arguments)` must be a"):
        session.answer(name, arguments)


@requirement("front:library:wrong_values")
@pytest.mark.parametrize(
    "wrong", ["gamma", ["ne"], ("ne",), [("one",)], [("one", "two", "three")], [5], {"oldText": "a"}, None]
)
def test_edits_of_another_kind_are_refused_in_words(session: AgentSession, wrong: Any) -> None:
    sha256 = session.create("a.txt", "one\n").sha256
    with pytest.raises(InvalidArgument, match="`edits` is not a list of what this method takes"):
        session.edit_file("a.txt", wrong, expected_sha256=sha256)
    with pytest.raises(InvalidArgument, match="`edits` is not a list of what this method takes"):
        session.multi_edit.multi_edit_text_file(f"{session.workspace.roots[0]}/a.txt", wrong)
    with pytest.raises(InvalidArgument):
        session.edit("a.txt", wrong)
    assert session.read_file("a.txt").content == "one\n"
