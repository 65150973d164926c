"""The wheel, as a user installs it: built, put into a fresh environment, and used from there."""

import subprocess
import sys
from pathlib import Path

from conformance.python_client import over_stdio
from conformance.report import Check, outcome
from conformance.servers import HOME, new_place

_PART = "Wheel in a fresh environment, Python SDK client, stdio"
_BESIDE = "Wheel without extras beside langchain-mcp-adapters, Python SDK client, stdio"
_PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
_IMPORT_BOTH = """
import langchain_mcp_adapters, surehold
from importlib.metadata import version
assert int(version("mcp").partition(".")[0]) < 2
surehold.open_workspace
"""


def checks(folder: Path) -> list[Check]:
    """Build, install, and live an edit's life with the server that was installed."""
    wheels, environment = folder / "wheels", folder / "environment"
    found = [
        _ran("the wheel builds", sys.executable, *_PIP, "wheel", "--no-deps", "-w", str(wheels), str(HOME)),
        _ran("a fresh environment is made", sys.executable, "-m", "venv", str(environment)),
    ]
    wheel = next((str(file) for file in wheels.glob("surehold-*.whl")), "no wheel")
    program = environment / "bin" / "surehold"
    found += [
        _ran(
            "it installs with its dependencies", str(environment / "bin" / "python"), *_PIP, "install", f"{wheel}[all]"
        ),
        _ran("`surehold version` answers", str(program), "version"),
    ]
    if any(check.outcome == "failed" for check in found):
        return found
    lived = over_stdio(new_place(folder / "installed", program=program), "auto")
    found += [Check(part=_PART, name=one.name, outcome=outcome(ok=one.ok), why=one.seen) for one in lived]
    return found + _check_beside_older_sdk(folder, wheel)


def _check_beside_older_sdk(folder: Path, wheel: str) -> list[Check]:
    """Install the package without extras beside a framework that needs the first generation of the SDK, and use it."""
    environment, pins = folder / "beside", HOME / "tests" / "conformance" / "pip" / "langchain-mcp-adapters.txt"
    python = str(environment / "bin" / "python")
    found = [
        _ran("a second environment is made", sys.executable, "-m", "venv", str(environment), part=_BESIDE),
        _ran("both install together", python, *_PIP, "install", wheel, "--requirement", str(pins), part=_BESIDE),
        _ran("both import, with an SDK before 2", python, "-c", _IMPORT_BOTH, part=_BESIDE),
    ]
    if any(check.outcome == "failed" for check in found):
        return found
    lived = over_stdio(new_place(folder / "other", program=environment / "bin" / "surehold"), "auto")
    return found + [Check(part=_BESIDE, name=one.name, outcome=outcome(ok=one.ok), why=one.seen) for one in lived]


def _ran(name: str, *command: str, part: str = _PART) -> Check:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        return Check(part=part, name=name, outcome="failed", why=str(error))
    ok = done.returncode == 0
    return Check(part=part, name=name, outcome=outcome(ok=ok), why="" if ok else done.stderr[-600:])
