"""An agent loop with plain data: a tool list for the model's API, tool calls in, answers out. The model is scripted.

Put a real model in the place of `scripted_model`: it gets the same tool list and the same messages.
"""

import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

from surehold import dispatch, open_workspace, tools_for

Json = dict[str, Any]


def scripted_model() -> Generator[Json, Json]:
    """Ask for one tool after the other, as a model does in Anthropic's Messages API; each result is sent back in."""
    yield tool_use("search_files", query="colour")
    seen = yield tool_use("read_file", path="notes.txt")
    sha256 = text_of(seen).partition("sha256 ")[2][:64]
    edits = [{"oldText": "colour", "newText": "color"}]
    refusal = yield tool_use("edit_file", path="notes.txt", expectedSha256="0" * 64, edits=edits)
    if refusal["is_error"]:  # not the version that it named: it names the one that it read
        yield tool_use("edit_file", path="notes.txt", expectedSha256=sha256, edits=edits, reason="one spelling")


def tool_use(name: str, **arguments: Any) -> Json:
    """Return a content block as the API sends it."""
    return {"type": "tool_use", "id": f"call_{name}", "name": name, "input": arguments}


def text_of(result: Json) -> str:
    """Return the text of a `tool_result` block."""
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def main() -> None:
    """Let the model work in a sample workspace until it asks for nothing more, then take the whole request back."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_STATE_HOME"] = str(Path(place, "state"))
        root = Path(place, "work")
        root.mkdir()
        (root / "notes.txt").write_text("The colour of the door is red.\n", encoding="utf-8")

        for api in ("anthropic", "openai-responses"):
            print(f"{len(tools_for(api))} tools for {api}")

        with open_workspace(root) as workspace:
            session = workspace.session(agent="scripted")
            model = scripted_model()
            with session.turn("Write color, not colour") as turn:
                call = next(model, None)
                while call is not None:
                    result = dispatch(session, call)  # a refusal is an answer too
                    print(f"{call['name']}: {text_of(result).splitlines()[0]}")
                    try:
                        call = model.send(result)
                    except StopIteration:
                        call = None
            print((root / "notes.txt").read_text(encoding="utf-8"), end="")
            workspace.undo(session=session.id, turn=turn.id)
        print((root / "notes.txt").read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
