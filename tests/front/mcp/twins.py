"""One workspace twice: served by our own loop, and by the protocol's own library."""

import json
import os
import re
from pathlib import Path
from typing import Any

from front.mcp.client import Json, StdioClient, Version, surehold
from front.mcp.conftest import make_site
from front.mcp.site import Site

ERAS: tuple[Version, ...] = ("2025-11-25", "2026-07-28")
RANDOM_PARTS = (
    (re.compile(r"surehold://answer/[\w-]+"), "surehold://answer/X"),
    (re.compile(r'"surehold/session": "[^"]*"'), '"surehold/session": "X"'),
    (re.compile(r'"requestState": "[^"]*"'), '"requestState": "X"'),
    (re.compile(r"Asked at [\d-]+ [\d:]+ UTC"), "Asked at TIME"),
    (re.compile(r"\b01[0-9a-z]{24}\b"), "CHANGE"),
    (re.compile(r"\bmcp-[0-9a-f]{32}\b"), "SESSION"),
    (re.compile(r'"(mtime\w*|lastModified)": [^,}]*'), r'"\1": 0'),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)"), "TIME"),
)


class Twins:
    """The same workspace twice, served by our own loop and by the SDK."""

    def __init__(self, folder: Path, version: Version, *, capabilities: Json | None = None) -> None:
        self.sites = dict[str, Site]()
        self.version: Version = version
        self._capabilities = capabilities
        self.clients = dict[str, StdioClient]()
        for name in ("own", "sdk"):
            (folder / name).mkdir()
            site = self.sites[name] = make_site(folder / name)
            for file, text in (("a.txt", "alpha\nbeta\n"), ("b.txt", "b\n"), ("sub/c.txt", "beta\n")):
                os.utime(site.put(file, text), (1_700_000_000, 1_700_000_000))
            os.utime(site.root / "sub", (1_700_000_000, 1_700_000_000))

    def start(self, *flags: str, handshake: bool = True) -> None:
        for name, site in self.sites.items():
            self.clients[name] = StdioClient(
                surehold("mcp", site.root, "--state-dir", site.state, *flags),
                version=self.version,
                capabilities=self._capabilities,
                environment={"SUREHOLD_STDIO": name},
                handshake=handshake,
            )

    def close(self) -> list[int]:
        return [client.close() for client in self.clients.values()]

    def plain(self, name: str, message: Any) -> Any:
        """Return a message without what differs by chance or by place."""
        text = json.dumps(message, sort_keys=True).replace(str(self.sites[name].root).lstrip("/"), "ROOT")
        for pattern, instead in RANDOM_PARTS:
            text = pattern.sub(instead, text)
        return json.loads(text)
