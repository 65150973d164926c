"""Print how the house is built: names, rooms, sizes, and what one `edit` costs; a table with before and after.

`before` was measured on the commit that the clean-up began with. The costs of an `edit` come from the real server, which
counts while it answers the third of three equal calls. `--list` prints these modules and functions, with their calls.
"""

import ast
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
SOURCE = PROJECT / "src" / "surehold"

BEFORE = {
    "classes that share a name": 101,
    "modules in the largest folder": 71,
    "files in src": 329,
    "lines in src": 41_822,
    "one-word function names, %": 65,
    "function length, 95th percentile": 21,
    "edit: path resolutions": 10,
    "edit: file reads": 3,
    "edit: modules": 90,
    "edit: Python calls": 1_903,
    "edit: transactions": 16,
}
GOALS = {
    "classes that share a name": 0,
    "modules in the largest folder": 15,
    "files in src": 220,
    "lines in src": 35_000,
    "one-word function names, %": 40,
    "function length, 95th percentile": 25,
    "edit: path resolutions": 2,
    "edit: file reads": 2,
    "edit: modules": 60,
    "edit: Python calls": 1_200,
    "edit: transactions": 6,
}

COUNTING = """
import json, os, signal, sqlite3, sys, threading

report, target = sys.argv[1:3]
sys.argv[1:3] = []
SUSPENDS = 0x20 | 0x80 | 0x200  # generators, coroutines, asynchronous generators
resumed = set()
on, calls, totals = False, {}, {"resolve": 0, "read": 0, "transactions": 0}
connect = sqlite3.connect


def counted(*args, **kwargs):
    link = connect(*args, **kwargs)
    link.set_trace_callback(statement)
    return link


def statement(sql):
    if on and sql.startswith("BEGIN"):
        totals["transactions"] += 1


def profile(frame, event, _):
    if not on or event != "call":
        return
    module = frame.f_globals.get("__name__") or ""
    if not module.startswith("surehold"):
        return
    if frame.f_code.co_flags & SUSPENDS:  # the profiler reports each resumption as a call
        if frame in resumed:
            return
        resumed.add(frame)
    name = frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name
    calls[module, name] = calls.get((module, name), 0) + 1
    if name == "LocalDisk.resolve":
        totals["resolve"] += 1
    if name in ("LocalDisk.read", "LocalDisk.read_watched") and target in str(frame.f_locals.get("target")):
        totals["read"] += 1


def begin(*_):
    global on
    calls.clear()
    totals.update(dict.fromkeys(totals, 0))
    on = True
    open(report + ".on", "w").close()


def end(*_):
    global on
    on = False
    with open(report + ".part", "w") as file:
        json.dump({**totals, "calls": [(*key, count) for key, count in calls.items()]}, file)
    os.rename(report + ".part", report)


sqlite3.connect = counted
signal.signal(signal.SIGUSR1, begin)
signal.signal(signal.SIGUSR2, end)
threading.setprofile(profile)
sys.setprofile(profile)
from surehold.front.cli.main import entry

entry()
"""


def functions() -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return every function and method of the source."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for tree in _trees() for node in ast.walk(tree) if isinstance(node, kinds)]


def _trees() -> list[ast.Module]:
    return [ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py"))]


def measure_source() -> dict[str, int]:
    """Measure what can be read off the source."""
    files = sorted(SOURCE.rglob("*.py"))
    classes = Counter(n.name.lstrip("_") for tree in _trees() for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    rooms = Counter(file.parent for file in files if file.name != "__init__.py")
    named = [node for node in functions() if not node.name.startswith("__")]
    one_word = [node for node in named if "_" not in node.name.strip("_")]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions()]
    return {
        "classes that share a name": sum(count for count in classes.values() if count > 1),
        "modules in the largest folder": max(rooms.values()),
        "files in src": len(files),
        "lines in src": sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files),
        "one-word function names, %": round(100 * len(one_word) / len(named)),
        "function length, 95th percentile": round(statistics.quantiles(lengths, n=20)[-1]),
    }


def trace_edit() -> dict[str, Any]:
    """Count what one `edit` in steady state does, in a real server on standard input and output."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        root, report = place / "root", place / "report.json"
        root.mkdir()
        (root / "a.py").write_text("".join(f"value_{n} = {n}\n" for n in range(300)), encoding="utf-8")
        command = [sys.executable, "-c", COUNTING, str(report), "a.py", "mcp", str(root)]
        command += ["--state-dir", str(place / "state")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            try:
                _drive(server, report)
            finally:
                server.kill()
        return json.loads(report.read_text(encoding="utf-8"))


def measure_edit(found: dict[str, Any]) -> dict[str, int]:
    """Sum up what `trace_edit` counted."""
    return {
        "edit: path resolutions": found["resolve"],
        "edit: file reads": found["read"],
        "edit: modules": len({module for module, _, _ in found["calls"]}),
        "edit: Python calls": sum(count for _, _, count in found["calls"]),
        "edit: transactions": found["transactions"],
    }


def _drive(server: "subprocess.Popen[bytes]", report: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "house", "version": "1"}}
    _ask(server, "initialize", hello)
    _send(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    rows = _ask(server, "tools/call", {"name": "read_file", "arguments": {"path": "a.py", "hashes": True}})
    row = next(r for r in rows["content"][0]["text"].splitlines() if "value_42 =" in r)
    for number in range(3):
        if number == 2:
            os.kill(server.pid, signal.SIGUSR1)
            _wait_for(report.with_name(report.name + ".on"), server)
        line = {"op": "replace_line", "hash": row.split("|")[0], "content": f"value_42 = {1000 + number}"}
        answer = _ask(server, "tools/call", {"name": "edit", "arguments": {"path": "a.py", "operations": [line]}})
        if answer.get("isError"):
            raise RuntimeError(answer["content"][0]["text"])
        row = answer["structuredContent"]["new_anchors"][0]
    os.kill(server.pid, signal.SIGUSR2)
    _wait_for(report, server)


def _wait_for(path: Path, server: "subprocess.Popen[bytes]") -> None:
    while not path.exists():
        if server.poll() is not None:
            raise RuntimeError("The server ended.")
        time.sleep(0.01)


def _send(server: "subprocess.Popen[bytes]", message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def _ask(server: "subprocess.Popen[bytes]", method: str, params: dict[str, Any]) -> dict[str, Any]:
    assert server.stdout is not None
    _send(server, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    while line := server.stdout.readline():
        message = json.loads(line)
        if message.get("id") == 1:
            return message["result"]
    raise RuntimeError("The server ended.")


def print_calls(calls: list[tuple[str, str, int]]) -> None:
    """Print each module that the `edit` went through and its functions, with how often they were called."""
    modules: Counter[str] = Counter()
    for module, _, count in calls:
        modules[module] += count
    for module in sorted(modules):
        print(f"{modules[module]:>5}  {module}")
        for owner, function, count in sorted(calls, key=lambda call: -call[2]):
            if owner == module:
                print(f"{count:>12}  {function}")
    print()


def main() -> int:
    """Print the table; exit 1 when a goal is missed."""
    found = trace_edit()
    if "--list" in sys.argv[1:]:
        print_calls(found["calls"])
    now = {**measure_source(), **measure_edit(found)}
    print(f"{'':36}{'before':>10}{'now':>10}{'goal':>10}")
    for name, value in now.items():
        verdict = "" if value <= GOALS[name] else "  missed"
        print(f"{name:36}{BEFORE[name]:>10,}{value:>10,}{GOALS[name]:>10,}{verdict}")
    return int(any(value > GOALS[name] for name, value in now.items()))


if __name__ == "__main__":
    sys.exit(main())
