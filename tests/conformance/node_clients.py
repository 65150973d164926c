"""Programs from npm: the official TypeScript clients, and the inspector's command line."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from conformance.lifecycle import BEFORE, NAME, REVISIONS, STEPS, Step, complete
from conformance.report import Check, outcome
from conformance.servers import HOME, Place, http_server, new_place
from tool_names import DEFAULT_TOOLS

CLIENTS = HOME / ".conformance" / "clients"
"""Where `scripts/conformance-setup.sh clients` installs."""
BIN = CLIENTS / "node_modules" / ".bin"
"""The pinned Node.js is here too."""
_INSPECTOR_REFUSED, _INSPECTOR_PROTOCOL_ERROR = 5, 1
_LOAD = 300

Json = dict[str, Any]


def installed(package: str) -> str:
    """Return the version of an installed package."""
    manifest = CLIENTS / "node_modules" / package / "package.json"
    return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])


def run_node(
    *command: str, env: dict[str, str] | None = None, cwd: Path | None = None, timeout: float = 180
) -> subprocess.CompletedProcess[str]:
    """Run a program from npm with the pinned Node.js."""
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        (str(BIN / command[0]), *command[1:]),
        check=False,
        capture_output=True,
        cwd=cwd,
        env={**(os.environ if env is None else env), "PATH": path},
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=timeout,
    )


# ── The TypeScript clients ────────────────────────────────────────────────────────────────────────────────────────────


def typescript_checks(folder: Path) -> list[Check]:
    """Live an edit's life with both generations of the client, over both transports."""
    found = list[Check]()
    for sdk, package, modes in (
        (1, "@modelcontextprotocol/sdk", ("legacy",)),
        (2, "@modelcontextprotocol/client", tuple(REVISIONS)),
    ):
        for mode in modes:
            part = f"TypeScript {package} {installed(package)}"
            place = new_place(folder / f"typescript-{sdk}-stdio-{mode}")
            found += _lived(f"{part}, stdio, {mode}", place, {"sdk": sdk, "mode": mode, "command": place.command})
            place = new_place(folder / f"typescript-{sdk}-http-{mode}")
            with http_server(place) as url:
                found += _lived(f"{part}, HTTP, {mode}", place, {"sdk": sdk, "mode": mode, "url": url})
    return found


def _lived(part: str, place: Place, plan: Json) -> list[Check]:
    whole = {
        **plan,
        "revision": REVISIONS[plan["mode"]],
        "root": str(place.root),
        "steps": STEPS,
        "tools": DEFAULT_TOOLS,
    }
    done = run_node("node", str(CLIENTS / "lifecycle.mjs"), json.dumps(whole))
    try:
        rows = cast("list[Json]", json.loads(done.stdout))
    except json.JSONDecodeError:
        return [Check(part=part, name="the client connects", outcome="failed", why=(done.stderr or done.stdout)[-600:])]
    steps = complete([Step(name=row["name"], ok=row["ok"], seen=row.get("seen") or "") for row in rows])
    return [Check(part=part, name=step.name, outcome=outcome(ok=step.ok), why=step.seen) for step in steps]


# ── The inspector ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inspector:
    """The inspector's command line against one server, in one era."""

    part: str
    config: Path
    era: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_node(
            *("mcp-inspector", "--cli", "--config", str(self.config), "--server", "surehold"),
            *("--protocol-era", self.era, "--format", "json", "-q", *arguments),
        )

    def call(self, tool: str, arguments: Json) -> subprocess.CompletedProcess[str]:
        return self.run("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))

    def check(self, name: str, done: subprocess.CompletedProcess[str], *, code: int, holds: str = "") -> Check:
        ok = done.returncode == code and holds in done.stdout + done.stderr
        seen = "" if ok else f"exit {done.returncode}: {(done.stdout + done.stderr)[-600:]}"
        return Check(part=self.part, name=name, outcome=outcome(ok=ok), why=seen)


def inspector_checks(folder: Path) -> list[Check]:
    """Let the inspector lint the schemas, call tools, and put a load on the server, in both eras."""
    found = list[Check]()
    version = installed("@modelcontextprotocol/inspector")
    for era in ("legacy", "modern"):
        place = new_place(folder / f"inspector-{era}")
        config = place.folder / "servers.json"
        command, *arguments = place.command
        config.write_text(
            json.dumps({"mcpServers": {"surehold": {"type": "stdio", "command": command, "args": arguments}}}),
            encoding="utf-8",
        )
        found += _inspected(_Inspector(part=f"Inspector {version}, stdio, {era}", config=config, era=era), place)
    return found


def _inspected(inspector: _Inspector, place: Place) -> list[Check]:
    (place.root / NAME).write_text(BEFORE, encoding="utf-8")
    stale = {"path": NAME, "expectedSha256": "0" * 64, "edits": [{"oldText": "beta", "newText": "BETA"}]}
    load = ("--load", "--load-requests", str(_LOAD), "--load-concurrency", "8")
    return [
        inspector.check(
            "tools/list --strict finds nothing wrong with a schema",
            inspector.run("--method", "tools/list", "--strict"),
            code=0,
            holds='"edit_file"',
        ),
        inspector.check("resources/list answers", inspector.run("--method", "resources/list"), code=0, holds=NAME),
        inspector.check("prompts/list answers", inspector.run("--method", "prompts/list"), code=0, holds="prompts"),
        inspector.check(
            "a call that succeeds exits with 0", inspector.call("read_file", {"path": NAME}), code=0, holds="beta"
        ),
        inspector.check(
            "a refused call exits with 5 and shows our message",
            inspector.call("edit_file", stale),
            code=_INSPECTOR_REFUSED,
            holds="Nothing was written.",
        ),
        inspector.check(
            "a resource that does not exist exits with 1, a protocol error",
            inspector.run("--method", "resources/read", "--uri", "surehold://nothing"),
            code=_INSPECTOR_PROTOCOL_ERROR,
            holds="surehold://nothing",
        ),
        _under_load(
            inspector,
            inspector.run(
                *("--method", "tools/call", "--tool-name", "read_file"),
                *("--tool-args-json", json.dumps({"path": NAME}), *load),
            ),
        ),
    ]


def _under_load(inspector: _Inspector, done: subprocess.CompletedProcess[str]) -> Check:
    """All calls of a load succeed; the latencies are for the bench, which has a baseline beside it."""
    return inspector.check(f"{_LOAD} calls, 8 at a time, all succeed", done, code=0, holds=f'"ok":{_LOAD},')
