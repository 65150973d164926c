"""Real hosts with a scripted model behind them: what reaches the model when it uses our tools."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from conformance.hosts.model import Model, Script, Shown, serve
from conformance.hosts.scripts import LONG_FILES, Arrival, arrival, judge_life, live, read_whole
from conformance.hosts.table import HOSTS, Host
from conformance.lifecycle import BEFORE, NAME
from conformance.node_clients import BIN
from conformance.report import Check, outcome
from conformance.servers import Place, new_place

_KEPT = ("LANG", "TERM")
_PATIENCE_SECONDS = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one host did with our server."""

    part: str
    client: str
    """What the host calls itself."""
    shown: list[Shown]
    """What the model was given in the life of an edit."""
    arrivals: list[Arrival]
    elsewhere: list[str]
    """Other addresses that the host wanted to reach; they were refused."""


def checks(folder: Path, hosts: tuple[Host, ...] = HOSTS) -> tuple[list[Check], list[Seen]]:
    """Run hosts; return the checks, and what each host did."""
    found, seen = list[Check](), list[Seen]()
    for host in hosts:
        try:
            part = f"{host.name} {host.version()}"
        except (OSError, StopIteration) as error:
            why = f"not installed: {error!r}"
            found.append(Check(part=host.name, name="the host is installed", outcome="failed", why=why))
            continue
        place = new_place(folder / host.key)
        (place.root / NAME).write_text(BEFORE, encoding="utf-8")
        life, trouble = _run(host, place, "life", live(place.root / NAME))
        found += _judge(part, life, judge_life(life.shown, (place.root / NAME).read_text(encoding="utf-8")), trouble)
        for name, lines in LONG_FILES.items():
            (place.root / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        pages, trouble = _run(host, place, "pages", read_whole(LONG_FILES))
        arrivals = [arrival(name, lines, pages.shown) for name, lines in LONG_FILES.items()]
        found += [_arrived(part, one, trouble) for one in arrivals]
        elsewhere = sorted(life.elsewhere | pages.elsewhere)
        seen.append(Seen(part=part, client=_client(place), shown=life.shown, arrivals=arrivals, elsewhere=elsewhere))
    return found, seen


def _run(host: Host, place: Place, name: str, script: Script) -> tuple[Model, str]:
    """Let a host follow a script; return its model, and what went wrong."""
    home, log = place.folder / name / "home", place.folder / name / "output.txt"
    home.mkdir(parents=True)
    model = Model(script=script, find=host.find)
    with serve(model, place.folder / name / "requests.jsonl") as url, log.open("wb") as output:
        start = host.start(place, home, url)
        process = subprocess.Popen(
            start.command,
            cwd=place.root,
            env={**host_environment(home, url), **start.variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code: object = process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            code = "none in time"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code == 0 and model.words == "done":
        return model, ""
    return model, f"exit {code}: {log.read_text(encoding='utf-8', errors='replace')[-600:]}"


def host_environment(home: Path, url: str) -> dict[str, str]:
    """Return an environment with nothing of this user in it, and no way to the network."""
    proxies = {name: url for word in ("http_proxy", "https_proxy") for name in (word, word.upper())}
    near = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost")
    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        **proxies,
        **near,
        "CI": "1",
        "HOME": str(home),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(home / ".config"),
    }


def _judge(part: str, model: Model, judged: dict[str, bool], trouble: str) -> list[Check]:
    whole = {
        "the host offers our tools to its model": bool(model.shown),
        **judged,
        "the host ends without trouble": not trouble,
    }
    why = f"{trouble} {[shown.text for shown in model.shown][:3]}"[:900]
    return [Check(part=part, name=name, outcome=outcome(ok=ok), why="" if ok else why) for name, ok in whole.items()]


def _arrived(part: str, one: Arrival, trouble: str) -> Check:
    ok = one.whole and not trouble
    name = f"{one.name}: every line of every page reaches the model, in order"
    return Check(part=part, name=name, outcome=outcome(ok=ok), why="" if ok else f"{one} {trouble}".strip())


def _client(place: Place) -> str:
    """Return the name that the host gave itself, as the history has it."""
    command = (str(place.program), "log", "--all", "--json", "--root", str(place.root))
    done = subprocess.run(
        (*command, "--state-dir", str(place.folder / "state")), check=True, capture_output=True, text=True
    )
    return next((entry["agent"] for entry in json.loads(done.stdout)["entries"] if entry["agent"]), "")
