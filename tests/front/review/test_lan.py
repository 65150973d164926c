"""The review page for a phone in the same network: `surehold serve --lan`."""

import hashlib
import http.client
import re
import ssl
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Browser, expect

from front.mcp.client import surehold
from front.mcp.site import HttpServer, Site
from front.review.browser import WAIT_MILLISECONDS, needs_browser
from spec.marks import requirement
from waiting import HANG_SECONDS

_SCALE = 4
_HALVES = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}


class Phone:
    """What a person reads in the terminal, and a device that connects with it."""

    def __init__(self, server: HttpServer) -> None:
        assert server.process.stderr
        said = ""
        while "agents cannot connect to it." not in said and (line := server.process.stderr.readline()):
            said += line.decode()
        self.said = said
        found = re.search(r"On your phone, in the same network: (\S+)", said)
        assert found, said
        self.link = found[1]

    def scan(self) -> str:
        """Read the QR code as a camera would."""
        drawn = [line for line in self.said.splitlines() if line and set(line) <= set(_HALVES)]
        rows = [row for line in drawn for row in zip(*(_HALVES[one] for one in line), strict=True)]
        lines = [bytes(255 * module for module in row for _ in range(_SCALE)) for row in rows for _ in range(_SCALE)]
        (found,) = zxingcpp.read_barcodes(Image.frombytes("L", (len(lines[0]), len(lines)), b"".join(lines)))
        return str(found.text)

    def send(self, method: str, path: str, body: str = "") -> http.client.HTTPResponse:
        place = urlsplit(self.link)
        trusting = ssl._create_unverified_context()  # pyright: ignore[reportPrivateUsage] - as a person who looked at the warning
        connection = http.client.HTTPSConnection(
            place.hostname or "", place.port, timeout=HANG_SECONDS, context=trusting
        )
        connection.request(method, path, body, {"Origin": f"https://{place.netloc}"})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response


@pytest.fixture
def phone(site: Site) -> Iterator[Phone]:
    with site.serve("serve", "--port", "0", "--lan", "--lan-address", "127.0.0.1") as server:
        yield Phone(server)


@needs_browser
@requirement("approval:page:lan")
def test_the_code_in_the_terminal_signs_one_phone_in_once(site: Site, phone: Phone, browser: Browser) -> None:
    site.put("a.txt", "one\n")
    assert phone.scan() == phone.link

    with browser.new_context(ignore_https_errors=True, viewport={"width": 390, "height": 844}) as person:
        page = person.new_page()
        page.set_default_timeout(WAIT_MILLISECONDS)
        page.goto(phone.link)
        expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        (cookie,) = person.cookies()
        assert (cookie.get("secure"), cookie.get("httpOnly"), cookie.get("sameSite")) == (True, True, "Strict")
    with browser.new_context(ignore_https_errors=True) as other:
        page = other.new_page()
        page.set_default_timeout(WAIT_MILLISECONDS)
        page.goto(phone.link)
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()


@requirement("approval:page:lan")
def test_only_the_page_is_in_the_network_and_the_fingerprint_is_told(site: Site, phone: Phone) -> None:
    assert phone.send("POST", "/mcp", "{}").status == 404
    assert phone.send("GET", "/").status != 200, "nobody is signed in"
    place = urlsplit(phone.link)
    presented = ssl.get_server_certificate((place.hostname or "", place.port or 0), timeout=HANG_SECONDS)
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(presented)).hexdigest().upper()
    assert re.sub(r"(..)(?=.)", r"\1:", digest) in phone.said
    kept = site.state / "review" / "certificate.pem"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@requirement("approval:page:lan")
def test_the_certificate_is_kept_and_one_of_the_persons_own_is_used(site: Site, tmp_path: Path) -> None:
    words = ("serve", "--port", "0", "--lan", "--lan-address", "127.0.0.1:0")
    with site.serve(*words) as server:
        Phone(server)
    kept = site.state / "review" / "certificate.pem"
    first = kept.read_bytes()
    with site.serve(*words) as server:
        Phone(server)
    assert kept.read_bytes() == first

    own = tmp_path / "own.pem"
    own.write_bytes(first)
    kept.unlink()
    with site.serve(*words, "--tls-cert", str(own), "--tls-key", str(own)) as server:
        phone = Phone(server)
        assert "fingerprint" not in phone.said
        assert phone.send("POST", "/mcp", "{}").status == 404
    assert not kept.exists()


@requirement("approval:page:lan")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--lan", "--tls-cert", "no.pem", "--tls-key", "no.pem"], "TLS cannot be served with `no.pem` and `no.pem`"),
        (["--lan", "--tls-cert", "no.pem"], "--tls-cert and --tls-key belong together."),
        (["--lan-address", "127.0.0.1"], "--lan-address, --tls-cert and --tls-key are for --lan."),
        (["--lan", "--lan-address", "203.0.113.7"], "Cannot listen on 203.0.113.7:0"),
    ],
)
def test_what_cannot_be_served_is_refused(site: Site, words: list[str], told: str) -> None:
    address = [] if "--lan-address" in words else ["--lan-address", "127.0.0.1"]
    command = surehold("serve", site.root, "--state-dir", site.state, "--port", "0", *words, *address)
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert told in done.stderr
