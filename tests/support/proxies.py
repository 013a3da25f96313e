"""nginx as deploy/nginx.conf sets it up, on free loopback ports before a service."""

import contextlib
import os
import ssl
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.processes import started
from tests.support.required import program
from tests.support.services import free_port
from tests.support.waiting import until

CONFIGURATION = ROOT / "deploy" / "nginx.conf"


@dataclass(frozen=True)
class Proxy:
    """A proxy that is running, the port that redirects, and its certificate."""

    port: int
    plain: int
    certificate: Path

    @property
    def address(self):
        return f"https://127.0.0.1:{self.port}"

    def context(self):
        """Return what a caller needs to trust the proxy."""
        return ssl.create_default_context(cafile=str(self.certificate))


def write_certificate(folder):
    """Write a certificate for loopback that vouches for itself, and its key."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return certificate, key


@contextmanager
def proxied(port, folder, changes=None):
    """Run nginx before the service at a port; ``changes`` are of the text of its configuration."""
    certificate, key = write_certificate(folder)
    secure, plain = free_port(), free_port()
    places = {
        "/tmp/": f"{folder}/",  # first, since the others are there
        "/run/secrets/tls_certificate": str(certificate),
        "/run/secrets/tls_key": str(key),
        "listen 8443": f"listen 127.0.0.1:{secure}",
        "listen 8080": f"listen 127.0.0.1:{plain}",
        "server counsel:8000": f"server 127.0.0.1:{port}",
    }
    text = CONFIGURATION.read_text(encoding="utf-8")
    for before, after in {**places, **(changes or {})}.items():
        assert before in text, f"nginx.conf has no {before!r}"
        text = text.replace(before, after)
    if os.name == "posix" and os.geteuid() == 0:
        text = "user root;\n" + text  # the folder of a test is its owner's only
    configuration = folder / "nginx.conf"
    configuration.write_text(text, encoding="utf-8")
    command = [program("nginx"), "-p", str(folder), "-c", str(configuration)]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
    log = folder / "nginx.log"
    with (
        log.open("w") as stream,
        started([*command, "-g", "daemon off;"], stdout=stream, stderr=stream) as process,
    ):
        proxy = Proxy(secure, plain, certificate)
        until(lambda: process.poll() is not None or _listens(proxy))
        assert process.poll() is None, log.read_text()
        yield proxy


def _listens(proxy):
    import socket

    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", proxy.port), timeout=5).close()
        return True
    return False
