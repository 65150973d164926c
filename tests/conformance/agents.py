"""Real agents with a scripted model behind them: what reaches the model when it uses our tools."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from conformance.lifecycle import BEFORE, NAME, sha256_in
from conformance.node_clients import installed, run_node
from conformance.report import Check, outcome
from conformance.scripted_model import SERVER, Call, Model, Script, Shown, Vendor, serve
from conformance.servers import Place, new_place

_OUTSIDE = "alpha\nBETA\ngamma\nan outside line\n"
_AFTER = "alpha\nBETA\nGAMMA\nan outside line\n"
_KEPT = ("HOME", "PATH", "LANG", "TERM")


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent's command line, and how it is told about the server and the model."""

    name: str
    package: str
    vendor: Vendor
    command: Callable[[Place], tuple[str, ...]]
    variables: Callable[[str], dict[str, str]]

    @property
    def part(self) -> str:
        return f"{self.name} {installed(self.package)} with a scripted model"


def _servers(place: Place, **more: object) -> dict[str, object]:
    command, *arguments = place.command
    return {"mcpServers": {SERVER: {"command": command, "args": arguments, **more}}}


def _claude(place: Place) -> tuple[str, ...]:
    config = place.folder / "servers.json"
    config.write_text(json.dumps(_servers(place)), encoding="utf-8")
    return (
        *("claude", "-p", "Follow the script.", "--model", "claude-sonnet-4-5"),
        *("--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", f"mcp__{SERVER}"),
    )


def _gemini(place: Place) -> tuple[str, ...]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
        **_servers(place, trust=True),
    }
    folder = place.folder / "home" / ".gemini"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return ("gemini", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "Follow the script.")


AGENTS = (
    Agent(
        name="Claude Code",
        package="@anthropic-ai/claude-code",
        vendor="anthropic",
        command=_claude,
        variables=lambda url: {
            "ANTHROPIC_API_KEY": "scripted",
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    ),
    Agent(
        name="Gemini CLI",
        package="@google/gemini-cli",
        vendor="gemini",
        command=_gemini,
        variables=lambda url: {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": url},
    ),
)


def script(path: Path) -> Script:
    """Read, edit, be refused after an outside change, and retry with nothing but what the refusal said."""

    def edit(sha256: str, old: str, new: str) -> Call:
        edits = [{"oldText": old, "newText": new}]
        return Call(tool="edit_file", arguments={"path": NAME, "expectedSha256": sha256, "edits": edits})

    read = yield Call(tool="read_file", arguments={"path": NAME})
    edited = yield edit(sha256_in(read.text), "beta", "BETA")
    known = _after(edited.text)
    path.write_text(_OUTSIDE, encoding="utf-8")
    refused = yield edit(known, "gamma", "GAMMA")
    yield edit(_named(refused.text, "actualSha256"), "gamma", "GAMMA")
    return "done"


def checks(folder: Path) -> tuple[list[Check], dict[str, list[Shown]]]:
    """Run every agent; return the checks and, for each agent, what its model was shown."""
    found, shown = list[Check](), dict[str, list[Shown]]()
    for agent in AGENTS:
        place = new_place(folder / agent.vendor)
        model, trouble = _run(agent, place)
        found += _judged(agent.part, model, place, trouble)
        shown[agent.part] = model.shown
    return found, shown


def _run(agent: Agent, place: Place) -> tuple[Model, str]:
    path = place.root / NAME
    path.write_text(BEFORE, encoding="utf-8")
    home = place.folder / "home"
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with serve(agent.vendor, script(path)) as (url, model):
        variables = {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), **agent.variables(url)}
        done = run_node(*agent.command(place), env=variables, cwd=place.root)
    return model, "" if done.returncode == 0 else (done.stdout + done.stderr)[-600:]


def _judged(part: str, model: Model, place: Place, trouble: str) -> list[Check]:
    text = [shown.text for shown in model.shown] + [""] * 4
    disk = (place.root / NAME).read_text(encoding="utf-8")
    judged = {
        "the agent offers our tools to its model": any(
            SERVER in name and name.endswith("edit_file") for name in model.offered
        ),
        "read_file: the model sees the lines as they are, and the sha256": "alpha" in text[0]
        and "beta" in text[0]
        and bool(sha256_in(text[0])),
        "edit_file: the model sees that it worked, the diff, and the next sha256": bool(_after(text[1]))
        and "+BETA" in text[1]
        and "Nothing was written" not in text[1],
        "stale: the model reads `Nothing was written.`, the kind, and both hashes": "Nothing was written." in text[2]
        and "stale_file" in text[2]
        and len(set(re.findall(r"\b[0-9a-f]{64}\b", text[2]))) >= 2,
        "stale: what the refusal says is enough for a retry that works": disk == _AFTER,
        "the agent ends without trouble": model.words == "done" and not trouble,
    }
    seen = {name: "" if ok else f"{trouble} {text[:3]}"[:900] for name, ok in judged.items()}
    return [Check(part=part, name=name, outcome=outcome(ok=ok), why=seen[name]) for name, ok in judged.items()]


def _after(text: str) -> str:
    """Return the hash of the file after an edit, as a model finds it: the last one that the answer names."""
    return _named(text, "afterSha256") or _named(text, "sha256")


def _named(text: str, name: str) -> str:
    """Return the hash beside a name, in JSON or in plain words."""
    found = re.search(rf"{name}\W{{1,12}}([0-9a-f]{{64}})", text)
    return found.group(1) if found else ""
