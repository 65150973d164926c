"""The wheel, as a user installs it: built, put into a fresh environment, and used from there."""

import subprocess
import sys
from pathlib import Path

from conformance.python_client import over_stdio
from conformance.report import Check, outcome
from conformance.servers import HOME, new_place

_PART = "Wheel in a fresh environment, Python SDK client, stdio"


def checks(folder: Path) -> list[Check]:
    """Build, install, and live an edit's life with the server that was installed."""
    wheels, environment = folder / "wheels", folder / "environment"
    pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
    found = [
        _ran("the wheel builds", sys.executable, *pip, "wheel", "--no-deps", "-w", str(wheels), str(HOME)),
        _ran("a fresh environment is made", sys.executable, "-m", "venv", str(environment)),
    ]
    wheel = next((str(file) for file in wheels.glob("surehold-*.whl")), "no wheel")
    program = environment / "bin" / "surehold"
    found += [
        _ran(
            "it installs with its dependencies", str(environment / "bin" / "python"), *pip, "install", f"{wheel}[all]"
        ),
        _ran("`surehold version` answers", str(program), "version"),
    ]
    if any(check.outcome == "failed" for check in found):
        return found
    lived = over_stdio(new_place(folder / "installed", program=program), "auto")
    return found + [Check(part=_PART, name=one.name, outcome=outcome(ok=one.ok), why=one.seen) for one in lived]


def _ran(name: str, *command: str) -> Check:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        return Check(part=_PART, name=name, outcome="failed", why=str(error))
    ok = done.returncode == 0
    return Check(part=_PART, name=name, outcome=outcome(ok=ok), why="" if ok else done.stderr[-600:])
