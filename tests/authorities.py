"""A private certificate authority, made on the fly, and the certificates that receivers under test show."""

from __future__ import annotations

import ipaddress
import ssl
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates for names and addresses. Its own certificate is the file ``ca_file``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("an authority for tests")
        built = _certificate(self._name, self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.ca_file = str(folder / "ca.pem")
        Path(self.ca_file).write_bytes(built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def context(self, *hosts: str, expired: bool = False, signed_by_itself: bool = False) -> ssl.SSLContext:
        """A server's TLS with a certificate for these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _named("a receiver")
        built = _certificate(subject, subject if signed_by_itself else self._name, key.public_key(), expired=expired)
        built = built.add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        certificate = built.sign(key if signed_by_itself else self._key, hashes.SHA256())
        path = self._folder / f"{certificate.serial_number}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def old_context(self, *hosts: str) -> ssl.SSLContext:
        """A server that speaks no newer TLS than 1.1."""
        context = self.context(*hosts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        return context


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, expired: bool = False
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=-1 if expired else 1))
    )
