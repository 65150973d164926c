"""The MCP conformance suite, against our adapter with the suite's fixtures mounted on it."""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from conformance.node_clients import installed, run_node
from conformance.report import Check
from conformance.servers import free_port, http_server, listening, new_place

REVISIONS = ("2025-11-25", "2026-07-28")
_LISTS = ("tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "server-sse-multiple-streams")
_WITHOUT_FIXTURES = {
    "2025-11-25": ("server-initialize", "server-session-lifecycle", "ping", *_LISTS),
    "2026-07-28": ("caching", "http-header-validation", "sep-2164-resource-not-found", *_LISTS),
}
_HERE = Path(__file__).parent
_PACKAGE = "@modelcontextprotocol/conformance"
_UNSCORED = {
    "extension": "An extension of the protocol, optional by definition; we do not offer it.",
    "pending": "The suite's own reference server does not pass it yet, so it does not count.",
    "added-after-release": "Added after the revision was released, so it does not count.",
}


def expected_failures(revision: str) -> dict[str, str]:
    """Return what we know to fail, each with the reason that follows it in the file."""
    rows = (_HERE / f"expected-{revision}.yml").read_text(encoding="utf-8").splitlines()
    entries = [row.strip().removeprefix("- ").partition("  # ") for row in rows if row.strip().startswith("- ")]
    return {entry: reason for entry, _, reason in entries}


def checks(folder: Path) -> list[Check]:
    """Run what each revision requires with the fixtures, then what needs none against the server as users start it."""
    found = [check for revision in REVISIONS for check in _revision(revision, folder / f"suite-{revision}")]
    with http_server(new_place(folder / "plain")) as url:
        for revision, scenarios in _WITHOUT_FIXTURES.items():
            found += [_plain(revision, scenario, url, folder / "plain" / revision) for scenario in scenarios]
    return found


def _plain(revision: str, scenario: str, url: str, folder: Path) -> Check:
    part = f"Conformance suite {installed(_PACKAGE)}, {revision}, the server without fixtures"
    results = folder / scenario
    done = run_node(
        *("conformance", "server", "--url", url, "--scenario", scenario, "--spec-version", revision),
        *("-o", str(results)),
    )
    found = [_scenario(part, revision, one) for one in (results.iterdir() if results.exists() else ())]
    if len(found) != 1:
        why = f"exit {done.returncode}: {(done.stdout + done.stderr)[-600:]}"
        return Check(part=part, name=scenario, outcome="failed", why=why)
    return found[0]


def _revision(revision: str, folder: Path) -> list[Check]:
    (folder / "root").mkdir(parents=True)
    port = free_port()
    server = (sys.executable, "-m", "conformance.fixture_server", str(folder), str(port))
    with listening(server, port, log=folder / "server.log"):
        done = run_node(
            *("conformance", "server", "--url", f"http://127.0.0.1:{port}/mcp", "--requirements", revision),
            *("--expected-failures", str(_HERE / f"expected-{revision}.yml"), "-o", str(folder / "results")),
            timeout=600,
        )
    (folder / "suite.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    part = f"Conformance suite {installed(_PACKAGE)}, {revision}, HTTP"
    found = [_scenario(part, revision, one) for one in sorted((folder / "results").iterdir())]
    verdict = Check(
        part=part,
        name="the suite's own verdict, with the expected failures",
        outcome="passed" if done.returncode == 0 else "failed",
        why="" if done.returncode == 0 else f"exit {done.returncode}: {done.stdout[-600:]}",
    )
    return [*found, verdict]


def _scenario(part: str, revision: str, folder: Path) -> Check:
    name = re.sub(r"-\d{4}-\d\d-\d\dT[\dZ-]+$", "", folder.name.removeprefix("server-"))
    rows = cast("list[dict[str, Any]]", json.loads((folder / "checks.json").read_text(encoding="utf-8")))
    passed = [row for row in rows if row["status"] == "SUCCESS"]
    failed = [row for row in rows if row["status"] in {"FAILURE", "WARNING"}]  # the suite counts a warning as failed
    counted = f"{len(passed)} of {len(passed) + len(failed)} checks"
    if not passed and not failed:
        return Check(part=part, name=name, outcome="not scored", why="The suite itself skips it.")
    if not failed:
        return Check(part=part, name=name, outcome="passed", seen=counted)
    return _failed(part, revision, name, counted, failed)


def _failed(part: str, revision: str, name: str, counted: str, failed: Iterable[dict[str, Any]]) -> Check:
    known = expected_failures(revision)
    entries = [name if name in known else f"{name}:{row['id']}" for row in failed]
    reasons = sorted({known[entry] for entry in entries if entry in known})
    if all(entry in known for entry in entries):
        return Check(part=part, name=name, outcome="expected failure", seen=counted, why=" ".join(reasons))
    if name in not_scored(revision):
        return Check(part=part, name=name, outcome="not scored", seen=counted, why=not_scored(revision)[name])
    said = "; ".join(f"{row['id']}: {row.get('errorMessage', '')}" for row in failed)
    return Check(part=part, name=name, outcome="failed", seen=counted, why=said[:900])


def not_scored(revision: str) -> dict[str, str]:
    """Return the scenarios that the revision only reports, and why the suite does not count them."""
    from conformance.node_clients import CLIENTS

    rows = (CLIENTS / "node_modules" / _PACKAGE / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8")
    found, scenario = dict[str, str](), ""
    for row in rows.partition("not_scored:")[2].splitlines():
        key, _, value = row.strip().removeprefix("- ").partition(": ")
        if key == "scenario":
            scenario = value
        elif key == "reason":
            found[scenario] = _UNSCORED.get(value, value)
    return found
