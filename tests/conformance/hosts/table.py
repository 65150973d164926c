"""Every host: how it is told about the server and the model, and to stay off the network."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.hosts.model import SERVER, Call, Find, plain, prefixed
from conformance.hosts.wires import Json, Offer
from conformance.servers import HOME, Place

_COMMANDS = HOME / ".conformance" / "hosts" / "node_modules"
"""Where `scripts/conformance-setup.sh hosts` installs programs."""
_FRAMEWORKS = HOME / ".conformance" / "frameworks"
"""Where `scripts/conformance-setup.sh frameworks` makes an environment for each framework."""
_DRIVERS = Path(__file__).parent / "drivers"
_PROMPT = "Follow the script."
_MODEL = "scripted"
_KEY = "scripted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a host is started once its settings are written."""

    command: tuple[str, ...]
    variables: Mapping[str, str]


Prepare = Callable[[Place, Path, str], Start]
"""Writes settings into a home directory, for the server of a place and the address of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A program from npm, or a few lines around a framework from PyPI."""

    name: str
    version: Callable[[], str]
    """Returns the installed version; raises OSError or StopIteration where it is not installed."""
    start: Prepare
    find: Find = prefixed

    @property
    def key(self) -> str:
        """The name as a word of a command line."""
        return self.name.replace(" ", "-").casefold()


def _program(name: str, package: str, start: Prepare, find: Find = prefixed) -> Host:
    def version() -> str:
        return str(json.loads((_COMMANDS / package / "package.json").read_text(encoding="utf-8"))["version"])

    return Host(name=name, version=version, start=start, find=find)


def _framework(name: str, package: str, driver: str) -> Host:
    environment = _FRAMEWORKS / package

    def version() -> str:
        folder = next(environment.glob(f"lib/*/site-packages/{package.replace('-', '_')}-*.dist-info"))
        return folder.stem.rpartition("-")[2]

    def start(place: Place, _home: Path, url: str) -> Start:
        python = str(environment / "bin" / "python")
        return Start(command=(python, str(_DRIVERS / driver), url, *place.command), variables={})

    return Host(name=name, version=version, start=start, find=plain)


def _entry(place: Place, **more: object) -> Json:
    command, *arguments = place.command
    return {"command": command, "args": arguments, **more}


def host_program(program: str) -> str:
    return str(_COMMANDS / ".bin" / program)


def _write(path: Path, settings: Json | str) -> Path:
    """Write settings; a JSON text is also YAML, and a TOML file is given as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings), encoding="utf-8")
    return path


def _claude(place: Place, home: Path, url: str) -> Start:
    config = _write(home / "servers.json", {"mcpServers": {SERVER: _entry(place)}})
    return Start(
        command=(
            *(host_program("claude"), "-p", _PROMPT, "--model", "claude-sonnet-4-5"),
            *("--mcp-config", str(config), "--strict-mcp-config", "--allowedTools", f"mcp__{SERVER}"),
        ),
        variables={
            "ANTHROPIC_API_KEY": _KEY,
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


def codex_start(url: str, home: Path, *, more: str = "") -> Start:
    """Set Codex up with the scripted model, and more settings; return how it is started."""
    settings = f"""
        model = "gpt-5.1"
        model_provider = "{_MODEL}"
        check_for_update_on_startup = false
        [analytics]
        enabled = false
        [features]
        apps = false
        plugins = false
        remote_plugin = false
        plugin_discovery_prefetch = false
        [feedback]
        enabled = false
        [model_providers.{_MODEL}]
        name = "{_MODEL}"
        base_url = "{url}/v1"
        wire_api = "responses"
        env_key = "SCRIPTED_KEY"
        {more}
    """
    _write(home / ".codex" / "config.toml", settings)
    return Start(
        command=(
            host_program("codex"),
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            _PROMPT,
        ),
        variables={"SCRIPTED_KEY": _KEY},
    )


def _codex(place: Place, home: Path, url: str) -> Start:
    command, *arguments = place.command
    server = f"""
        [mcp_servers.{SERVER}]
        command = {json.dumps(command)}
        args = {json.dumps(arguments)}
        startup_timeout_sec = 60
        required = true
    """
    return codex_start(url, home, more=server)


def _gemini(place: Place, home: Path, url: str) -> Start:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
        "mcpServers": {SERVER: _entry(place, trust=True)},
    }
    _write(home / ".gemini" / "settings.json", settings)
    return Start(
        command=(host_program("gemini"), "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", _PROMPT),
        variables={"GEMINI_API_KEY": _KEY, "GOOGLE_GEMINI_BASE_URL": url},
    )


def _opencode(place: Place, home: Path, url: str) -> Start:
    model = {"name": _MODEL, "tool_call": True, "limit": {"context": 1_000_000, "output": 8_000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": _KEY},
        "models": {_MODEL: model},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": f"{_MODEL}/{_MODEL}",
        "provider": {_MODEL: provider},
        "permission": "allow",
        "mcp": {SERVER: {"type": "local", "command": list(place.command), "enabled": True}},
    }
    return Start(
        command=(host_program("opencode"), "run", _PROMPT),
        variables={
            "OPENCODE_CONFIG": str(_write(home / "opencode.json", settings)),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
    )


def _deferred(offers: list[Offer], call: Call) -> tuple[Offer, Mapping[str, Any]] | None:
    """Find a tool of ours where the host calls tools of servers through a tool of its own."""
    wrapped = {"name": f"mcp__{SERVER}__{call.tool}", "arguments": dict(call.arguments)}
    return next(((offer, wrapped) for offer in offers if offer.name == "tool_call"), None)


def _qwen(place: Place, home: Path, url: str) -> Start:
    settings = {
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "mcpServers": {SERVER: _entry(place, trust=True)},
    }
    _write(home / ".qwen" / "settings.json", settings)
    return Start(
        command=(host_program("qwen"), "--auth-type", "openai", "--approval-mode", "yolo", "-m", _MODEL, _PROMPT),
        variables={"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": _MODEL},
    )


def _copilot(place: Place, home: Path, url: str) -> Start:
    config = _write(home / "servers.json", {"mcpServers": {SERVER: _entry(place, tools=["*"])}})
    return Start(
        command=(
            *(
                host_program("copilot"),
                "-p",
                _PROMPT,
                "--allow-all-tools",
                "--no-auto-update",
                "--disable-builtin-mcps",
            ),
            *("--additional-mcp-config", f"@{config}"),
        ),
        variables={
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_API_KEY": _KEY,
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "1000000",
            "COPILOT_MODEL": _MODEL,
        },
    )


def _cline(place: Place, home: Path, url: str) -> Start:
    data = home / ".cline" / "data"
    _write(data / "settings" / "cline_mcp_settings.json", {"mcpServers": {SERVER: _entry(place, timeout=60)}})
    provider = {"provider": "openai-compatible", "apiKey": _KEY, "model": _MODEL, "baseUrl": f"{url}/v1"}
    _write(
        data / "settings" / "providers.json",
        {
            "version": 1,
            "lastUsedProvider": "openai-compatible",
            "modes": {},
            "providers": {
                "openai-compatible": {
                    "settings": provider,
                    "updatedAt": "2026-01-01T00:00:00.000Z",
                    "tokenSource": "manual",
                }
            },
        },
    )
    _write(data / "settings" / "global-settings.json", {"telemetryOptOut": True, "autoUpdateEnabled": False})
    return Start(
        command=(host_program("cline"), "--compaction", "off", _PROMPT),
        variables={"DISABLE_TELEMETRY": "1", "OTEL_TELEMETRY_ENABLED": "false", "CLINE_NO_AUTO_UPDATE": "1"},
    )


def _continue(place: Place, home: Path, url: str) -> Start:
    model = {
        "name": _MODEL,
        "provider": "openai",
        "model": _MODEL,
        "apiKey": _KEY,
        "apiBase": f"{url}/v1",
        "roles": ["chat"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {"contextLength": 1_000_000},
    }
    settings = {
        "name": "conformance",
        "version": "1.0.0",
        "schema": "v1",
        "models": [model],
        "mcpServers": [{"name": SERVER, **_entry(place)}],
    }
    config = _write(home / "continue.yaml", settings)
    return Start(
        command=(host_program("cn"), "-p", _PROMPT, "--config", str(config), "--auto"),
        variables={"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_DISABLE_COMMIT_SIGNATURE": "1"},
    )


HOSTS = (
    _program("Claude Code", "@anthropic-ai/claude-code", _claude),
    _program("Codex", "@openai/codex", _codex),
    _program("Gemini CLI", "@google/gemini-cli", _gemini),
    _program("opencode", "opencode-ai", _opencode),
    _program("Qwen Code", "@qwen-code/qwen-code", _qwen, _deferred),
    _program("Copilot CLI", "@github/copilot", _copilot),
    _program("Cline", "cline", _cline),
    _program("Continue", "@continuedev/cli", _continue, plain),
    _framework("openai-agents", "openai-agents", "openai_agents.py"),
    _framework("pydantic-ai", "pydantic-ai-slim", "pydantic_ai_agent.py"),
    _framework("langchain-mcp-adapters", "langchain-mcp-adapters", "langgraph_agent.py"),
    _framework("google-adk", "google-adk", "google_adk_agent.py"),
    _framework("LlamaIndex tools-mcp", "llama-index-tools-mcp", "llama_index_agent.py"),
)
