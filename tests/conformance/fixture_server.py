"""Our adapter with the fixtures of the conformance suite, served over HTTP as `surehold mcp --http` serves it.

`python -m conformance.fixture_server FOLDER PORT` with `tests` on the path; FOLDER holds `root`.
"""

import sys
from pathlib import Path

from conformance.fixtures import PROMPTS, TOOLS, FixtureResources
from surehold.app import Settings, open_workspace
from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.sdk.http import serve_http
from surehold.front.mcp.sdk.server import make_server
from surehold.front.shared.http_server import open_port
from surehold.front.shared.http_settings import HttpSettings


def main(folder: Path, port: int) -> int:
    with open_workspace(folder / "root", settings=Settings(state_dir=folder / "state", mode="default")) as workspace:
        adapter = Adapter(workspace=workspace, tools=TOOLS, resources=(FixtureResources(),), prompts=PROMPTS)
        listener, settings = open_port(HttpSettings(host="127.0.0.1", port=port))
        return serve_http(make_server(adapter), listener, settings)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
