"""The browser that the review page is looked at with."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from waiting import HANG_SECONDS

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WAIT_MILLISECONDS = HANG_SECONDS * 1000
"""A busy machine is slow, not wrong."""
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

expect.set_options(timeout=WAIT_MILLISECONDS)

_PACKAGES = Path(__file__).parents[3] / ".conformance" / "browser" / "node_modules"
AXE = _PACKAGES / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed")
EXT_APPS = _PACKAGES / "@modelcontextprotocol" / "ext-apps" / "dist" / "src"
PACKAGES = _PACKAGES
needs_bridge = pytest.mark.skipif(not EXT_APPS.exists(), reason="the bridge of MCP Apps is not installed")
