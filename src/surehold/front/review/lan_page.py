"""Serves the review page to a phone in the same network: over TLS, and without the tools.

1. The page has a port of its own. What agents use stays where it is, on this machine.
2. A link with a one-time code signs one browser in. It is shown as a QR code, so that no one types it.
3. Without a certificate of the person's own, one is made for this address and kept with the workspace: a browser warns of
   it once, and its fingerprint tells that it is the right one.
"""

import hashlib
import ipaddress
import os
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import segno
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from surehold.errors import InvalidArgument
from surehold.front.review.page_records import open_page_directory
from surehold.front.review.page_server import PageThread
from surehold.front.review.sign_in import SignIn
from surehold.front.review.site import ReviewPage
from surehold.front.shared.http_server import open_port
from surehold.front.shared.http_settings import CertificateFiles, HttpSettings, LanSettings

_CODE_MINUTES = 10
_CERTIFICATE_DAYS = 397
"""Browsers refuse certificates that are valid for longer."""
_FOREIGN_ADDRESS = ("192.0.2.1", 9)
"""An address of the documentation, which no network has. Nothing is sent to it."""
_NAME_OTHER_ADDRESS = "Name one with --lan-address."


class LanPage:
    """The review page at an address of the local network. Entering opens the port, and serves."""

    def __init__(self, state_dir: Path, page: ReviewPage, sign_in: SignIn, order: LanSettings) -> None:
        host = order.host or _find_address()
        certificate = order.certificate or _own_certificate(open_page_directory(state_dir), host)
        self.fingerprint = _read_fingerprint(certificate)
        self._is_made_here = order.certificate is None
        listener, settings = open_port(HttpSettings(host=host, port=order.port, scheme="https"))
        self._thread = PageThread(lambda: page, listener, settings, certificate)
        self.link = f"{settings.url}/#{sign_in.make_code(seconds=_CODE_MINUTES * 60)}"

    def describe(self) -> str:
        """Return what a person needs to open the page on another device."""
        lines = [f"On your phone, in the same network: {self.link}", _draw_code(self.link)]
        if self._is_made_here:
            lines.append(
                "The browser warns that it does not know the certificate, which was made for this."
                f" SHA-256 fingerprint: {self.fingerprint}"
            )
        lines += [
            f"The link signs in one browser, once, within {_CODE_MINUTES} minutes.",
            "Only the page is served there; agents cannot connect to it.",
        ]
        return "\n".join(lines)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.close()


def _draw_code(link: str) -> str:
    """Return a link as a QR code of half blocks."""
    rows = [list(row) for row in segno.make(link, error="l", micro=False).matrix_iter(border=2)]
    rows += [[0] * len(rows[0])] if len(rows) % 2 else []
    blocks = {
        (0, 0): "█",
        (0, 1): "▀",
        (1, 0): "▄",
        (1, 1): " ",
    }  # the light modules are drawn, since most terminals are dark
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return "\n".join("".join(blocks[bool(up), bool(down)] for up, down in zip(*pair, strict=True)) for pair in pairs)


def _find_address() -> str:
    """Return the address that other devices of the network know this machine by."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_FOREIGN_ADDRESS)  # only chooses a route
        address = str(probe.getsockname()[0])
        if not ipaddress.ip_address(address).is_loopback:
            return address
    message = "This machine has no address in a network."
    raise InvalidArgument(message, reason="cannot_listen", action=_NAME_OTHER_ADDRESS)


def _read_fingerprint(files: CertificateFiles) -> str:
    """Return the fingerprint of a certificate as browsers show it; refuse files that TLS cannot be served with."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key, password="")
        digest = hashlib.sha256(_load_certificate(Path(files.certificate)).public_bytes(Encoding.DER)).hexdigest()
    except (OSError, ValueError) as error:  # a missing file, or not what it should be
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "they do not fit"
        message = f"TLS cannot be served with `{files.certificate}` and `{files.key}`: {reason}."
        action = "Name a PEM certificate and its key, without a password; without both, a certificate is made."
        raise InvalidArgument(message, reason="bad_certificate", action=action) from None
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2)).upper()


def _own_certificate(directory: Path, host: str) -> CertificateFiles:
    """Return the certificate that was made for an address; make one if there is none, or if it is nearly over."""
    path = directory / "certificate.pem"
    files = CertificateFiles(certificate=str(path), key=str(path))
    with suppress(OSError, ValueError, x509.ExtensionNotFound):
        known = _load_certificate(path)
        names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if _alternative_name(host) in names and known.not_valid_after_utc > datetime.now(UTC) + timedelta(days=1):
            return files
    temporary = path.with_name(f"certificate.{os.getpid()}")
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(_make_certificate(host))
    temporary.replace(path)
    return files


def _make_certificate(host: str) -> bytes:
    """Return a new key and its certificate for an address, as one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Surehold review page")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_CERTIFICATE_DAYS - 1))
        .add_extension(x509.SubjectAlternativeName([_alternative_name(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret + certificate.public_bytes(Encoding.PEM)


def _load_certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
