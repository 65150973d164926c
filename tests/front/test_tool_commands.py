import json

from front.shell import Shell
from spec.marks import requirement
from surehold.dialects.families import tools_of
from surehold.tools.export import exported


@requirement("front:cli:tool")
def test_a_tool_is_run_once_and_its_result_printed(shell: Shell) -> None:
    (shell.root / "a.txt").write_text("hello\n")

    said = shell("tool", "read_file", "--json", '{"path": "a.txt"}')

    assert (said.code, said.document["ok"], said.document["data"]["content"]) == (0, True, "hello\n")


@requirement("front:cli:tool")
def test_a_refusal_of_a_tool_is_exit_code_1_and_the_same_document_as_an_agent_gets(shell: Shell) -> None:
    said = shell(
        "tool", "write_file", "--json", '{"path": "a.txt", "content": "x", "expectedSha256": "%s"}' % ("0" * 64)
    )

    assert (said.code, said.document["error"]["kind"]) == (1, "not_found")


def test_arguments_may_come_from_standard_input_and_the_text_of_a_model_be_shown(shell: Shell) -> None:
    (shell.root / "a.txt").write_text("hello\n")

    said = shell("tool", "read_file", "--json", "-", "--text", stdin=b'{"path": "a.txt"}')

    assert (said.code, said.out.splitlines()[1]) == (0, "hello")


def test_a_change_by_a_tool_from_the_shell_is_in_the_log_under_its_name(shell: Shell) -> None:
    shell("tool", "create_file", "--json", '{"path": "a.txt", "content": "x"}')

    (entry,) = shell.json("log")["entries"]
    assert (entry["tool"], entry["agent"]) == ("create_file", "ada")


def test_unchecked_changes_are_taken_when_the_person_says_so(shell: Shell) -> None:
    (shell.root / "a.txt").write_text("hello\n")
    words = ("tool", "write_file", "--json", '{"path": "a.txt", "content": "x\\n"}')

    assert (shell(*words).code, shell(*words, "--allow-unchecked").code) == (1, 0)
    assert (shell.root / "a.txt").read_text() == "x\n"


def test_wrong_arguments_and_unknown_tools_are_refused_with_the_next_step(shell: Shell) -> None:
    no_json, no_object = shell("tool", "read_file", "--json", "{path"), shell("tool", "read_file", "--json", "[1]")
    unknown = shell("tool", "frobnicate")

    assert [no_json.code, no_object.code, unknown.code] == [1, 1, 1]
    assert "read_file" in unknown.out + unknown.err


@requirement("front:cli:schema")
def test_the_definitions_are_exported_in_three_notations(shell: Shell) -> None:
    for name in ("openai", "anthropic", "mcp"):
        said = shell("schema", "--format", name)

        assert (said.code, json.loads(said.out)) == (0, exported(tools_of(), name))
    assert len(json.loads(shell("schema", "--tools", "anchored").out)) == 3
    assert shell("schema", "--tools", "nonsense").code == 1
