import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import Field

from spec.marks import requirement
from surehold.errors import InvalidArgument, SureholdError
from surehold.library.families import tool_named, tools_of
from surehold.tools.call import Answer, AnswerBudget, CallContext
from surehold.tools.listing import Hints
from surehold.tools.params import CallSubject, NamesFile, NestedParams, Params, SubjectPath, parse_arguments
from surehold.tools.schema import params_schema, result_schema
from surehold.tools.spec import AnyTool, Result, Wire, tool
from workspaces import make_bench


class PlainWire(Wire):
    """Success and failure, spelled as plainly as possible."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> dict[str, Any]:
        return {"ok": True, "data": result.model_dump(by_alias=True), "warnings": list(warnings)}

    def failure(self, error: SureholdError) -> dict[str, Any]:
        return {"ok": False, "error": error.kind, "message": error.message}

    def failure_text(self, error: SureholdError, *, wrote_nothing: bool) -> str:
        return f"{wrote_nothing} {error.message}"

    def output_schema(self, result: type[Result]) -> dict[str, Any]:
        return result_schema(result)


class Word(NestedParams):
    text: str
    """What to look for."""
    title: bool = False
    """Whether it begins with a capital."""


class CountParams(Params):
    path: str
    """The file to look at."""
    words: list[Word] = Field(default_factory=list[Word])
    """Words to count."""


class CountResult(Result):
    line_count: int = Field(serialization_alias="lineCount")

    def text(self, budget: AnswerBudget) -> str:
        return f"{self.line_count} lines"


@tool("count_lines", hints=Hints(kind="read", read_only=True), wire=PlainWire())
def count_lines(context: CallContext, params: CountParams) -> CountResult:
    """Count the lines of a file.

    The count is that of `grep -c`.
    """
    return CountResult(line_count=context.session.read(params.path).line_count)


class UnspeakableResult(Result):
    """Fails while it is laid out, in one way or another."""

    fails_in: str
    change_id: str = ""

    def text(self, budget: AnswerBudget) -> str:
        return self._fail("text", "done")

    def cut_to_budget(self, budget: AnswerBudget) -> "UnspeakableResult":
        return self._fail("cut_to_budget", self)

    def content_blocks(self) -> tuple[dict[str, Any], ...]:
        return self._fail("content_blocks", ())

    def _fail(self, where: str, value: Any) -> Any:
        if self.fails_in == where:
            raise ZeroDivisionError(where)
        return value


class ChangeParams(Params):
    path: SubjectPath
    fails_in: str
    writes: bool = True


class BrokenWire(PlainWire):
    """Fails to spell a result that says so."""

    def success(self, result: Result, warnings: tuple[str, ...]) -> dict[str, Any]:
        if getattr(result, "fails_in", "") == "success":
            raise ZeroDivisionError("success")
        return super().success(result, warnings)


@tool("unspeakable", hints=Hints(kind="edit", operation="write"), wire=BrokenWire())
def unspeakable(context: CallContext, params: ChangeParams) -> UnspeakableResult:
    """Change a file, and fail to say so."""
    change_id = context.session.create(params.path, "x\n").change_id if params.writes else ""
    return UnspeakableResult(fails_in=params.fails_in, change_id=change_id)


@pytest.fixture
def context(tmp_path: Any) -> CallContext:
    bench = make_bench("memory", "memory", tmp_path)
    bench.put("a", b"1\n2\n")
    return CallContext(session=bench.workspace.session())


@requirement("engine:tool:once")
def test_a_tool_is_a_typed_function(context: CallContext) -> None:
    assert count_lines(context, CountParams(path="a")) == CountResult(line_count=2)
    assert count_lines.description == "Count the lines of a file.\n\nThe count is that of `grep -c`."


@requirement("engine:tool:once")
def test_a_tool_is_called_with_plain_data_and_answers_in_its_dialect(context: CallContext) -> None:
    assert count_lines.call(context, {"path": "a"}) == Answer(
        ok=True, text="2 lines", data={"ok": True, "data": {"lineCount": 2}, "warnings": []}
    )


@requirement("engine:tool:refusal")
def test_a_refusal_is_an_answer_too(context: CallContext) -> None:
    answer = count_lines.call(context, {"path": "missing"})

    assert (answer.ok, answer.data) == (
        False,
        {"ok": False, "error": "not_found", "message": "`missing` does not exist."},
    )


@requirement("engine:tool:unknown_top_level")
def test_an_unknown_argument_at_the_top_is_ignored_with_a_warning(context: CallContext) -> None:
    answer = count_lines.call(context, {"path": "a", "wait_for_previous": True})

    assert (answer.ok, answer.warnings) == (True, ("Unknown argument `wait_for_previous` was ignored.",))


@requirement("engine:tool:unknown_nested")
def test_an_unknown_key_inside_an_object_is_an_error_that_lists_the_allowed_ones() -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_arguments("count_lines", CountParams, {"path": "a", "words": [{"text": "x", "txet": "y"}]})

    assert refused.value.details["problems"] == [
        {"argument": "txet of word 0", "problem": "Unknown key; allowed are text, title"}
    ]


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_arguments("count_lines", CountParams, {})

    assert "`path`" in refused.value.message


@requirement("engine:tool:schema")
def test_schemas_are_slim_and_say_what_each_argument_is() -> None:
    schema = params_schema(CountParams)

    # Compared as text, since models read it as text: the order counts too.
    assert json.dumps(schema, indent=2) == json.dumps(
        {
            "properties": {
                "path": {"description": "The file to look at.", "type": "string"},
                "words": {
                    "description": "Words to count.",
                    "items": {
                        "additionalProperties": False,
                        "properties": {
                            "text": {"description": "What to look for.", "type": "string"},
                            "title": {"description": "Whether it begins with a capital.", "type": "boolean"},
                        },
                        "required": ["text"],
                        "type": "object",
                    },
                    "type": "array",
                },
            },
            "required": ["path"],
            "type": "object",
        },
        indent=2,
    )


class TouchParams(Params):
    ALIASES = {"file_path": "path"}  # noqa: RUF012 - a class variable of the base class
    DEMANDED = ("proof",)

    path: SubjectPath
    proof: str = ""


class TouchResult(Result):
    path: str

    def text(self, budget: AnswerBudget) -> str:
        return self.path


@tool("touch", hints=Hints(kind="edit", operation="write"), wire=PlainWire())
def touch(context: CallContext, params: TouchParams) -> TouchResult:
    """Touch nothing."""
    if not params.proof:
        raise InvalidArgument("`proof` is missing.")
    return TouchResult(path=params.path)


@requirement("host:arguments:aliases")
def test_another_name_for_an_argument_is_taken_silently(context: CallContext) -> None:
    answer = touch.call(context, {"file_path": "a", "proof": "x"})

    assert (answer.ok, answer.text, answer.warnings) == (True, "a", ())


def test_an_argument_and_its_other_name_together_mean_the_argument(context: CallContext) -> None:
    assert touch.call(context, {"path": "a", "file_path": "b", "proof": "x"}).text == "a"


def test_the_schema_names_only_the_real_arguments_and_demands_what_the_tool_checks_itself() -> None:
    assert touch.input_schema == {
        "properties": {"path": {"type": "string"}, "proof": {"type": "string"}},
        "required": ["path", "proof"],
        "type": "object",
    }


@requirement("files:audit:every_call")
def test_a_call_that_is_refused_before_any_file_is_looked_at_is_in_the_ledger(context: CallContext) -> None:
    answer = touch.call(context, {"path": "a"})

    (entry,) = context.session.history.log()
    assert (answer.ok, answer.structured) == (False, answer.data)
    assert (entry.call.tool, entry.change.path, entry.ok, entry.error_kind) == ("touch", "a", False, "command_failed")


def test_a_call_that_was_cancelled_does_not_run(context: CallContext) -> None:
    answer = touch.call(replace(context, cancelled=lambda: True), {"path": "a", "proof": "x"})

    assert (answer.ok, answer.data["error"]) == (False, "command_failed")


@pytest.mark.parametrize("where", ["text", "success", "cut_to_budget", "content_blocks"])
def test_an_error_while_the_result_is_laid_out_does_not_hide_a_change_that_was_made(
    context: CallContext, where: str
) -> None:
    answer = unspeakable.call(context, {"path": "b", "fails_in": where})

    (entry,) = context.session.history.log()
    assert (entry.ok, entry.change.path) == (True, "b")
    assert answer.ok
    assert isinstance(answer.bug, ZeroDivisionError)
    assert answer.text == (
        "The change was written, but Surehold failed to lay out the answer (ZeroDivisionError); this is a bug. "
        f"Do not send the call again; read the file.\nchange_id: {entry.change_id}"
    )
    assert answer.data == answer.structured == {"change_id": entry.change_id, "warnings": list(answer.warnings)}


def test_an_error_while_the_result_is_laid_out_is_raised_when_nothing_was_changed(context: CallContext) -> None:
    with pytest.raises(ZeroDivisionError):
        unspeakable.call(context, {"path": "b", "fails_in": "text", "writes": False})


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("read_file", {"filePath": "a"}, CallSubject(path="a")),
        ("list_directory", {}, CallSubject(path=".")),
        ("Grep", {"pattern": "x"}, CallSubject()),
        ("Read", {"path": "a", "file_path": "b"}, CallSubject(path="b")),
        ("NotebookEdit", {"notebook_path": "a.ipynb"}, CallSubject(path="a.ipynb")),
        ("edit", {"file_path": "a"}, CallSubject(path="a")),
        ("move_file", {"source": "a", "toPath": "b"}, CallSubject(path="a", destination="b")),
        ("restore_file", {"trashId": "t1", "targetPath": "a"}, CallSubject(path="a", trashed="t1")),
        ("read_file", {"path": 7}, CallSubject()),
    ],
)
def test_a_tool_knows_which_of_its_arguments_name_files(
    name: str, arguments: dict[str, Any], expected: CallSubject
) -> None:
    assert tool_named(name).params.subject_of(arguments) == expected


@pytest.mark.parametrize("one", tools_of("all"), ids=lambda one: one.name)
def test_every_tool_but_the_patch_marks_the_file_that_it_is_about(one: AnyTool) -> None:
    marked = {
        role for info in one.params.model_fields.values() for role in info.metadata if isinstance(role, NamesFile)
    }

    assert bool(marked) is (one.name != "apply_patch")
