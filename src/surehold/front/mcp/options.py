"""How a server behaves. Light to import, because the command line builds it."""

from dataclasses import dataclass

ASK_SECONDS = 600.0
ALL_TOOLS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    lean: bool = False
    """Say things in as few words as possible."""
    read_only: bool = False
    """List only tools that change nothing."""
    unchecked: bool = False
    """Changes need no sha256."""
    contract_errors: frozenset[str] = frozenset()
    """Tools whose refusals are protocol errors, as their contract says."""
    deprecated_names: bool = True
    """Names of arguments that are on their way out still work, with a warning."""
    ask_seconds: float = ASK_SECONDS
    """How long a person has time to answer a question."""
    max_chars: int = 0
    max_tokens: int = 0
    max_only_lowers: bool = False
    """A limit is from a file of the workspace, and cannot make answers longer than the host takes."""
    meta: bool = False
    """Every result carries its data for programs in `_meta`, also for clients that do not ask."""
    always_load: frozenset[str] = frozenset()
    """Tools that a host which loads definitions late should load at once, beside those that are marked so; `all` means every one."""
