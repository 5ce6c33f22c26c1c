"""The dialling end of TLS against the listening end: what is taken, and what is said of the rest."""

import datetime as dt
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from vpnrouter.config.settings_models import (
    ClientCertRemoteAuthentication,
    ListenerTls,
    TlsServerCert,
)
from vpnrouter.errors import OperationError
from vpnrouter.server.net.dial import shake_hands
from vpnrouter.server.net.tls import ServerTls, client_context

PATIENCE_S = 20.0


def at(days: float) -> dt.datetime:
    """So many days from now."""
    return dt.datetime.now(dt.UTC) + dt.timedelta(days=days)


class Works:
    """An authority with its files in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(str(folder / "ca.pem"))

    def issue(self, file: str, *names: str, issuer: trustme.CA | None = None, **more: Any) -> str:
        """Issue a certificate; the path of a file with its key and chain."""
        made = (issuer or self.authority).issue_cert(*names, **more)
        path = self.folder / file
        made.private_key_and_cert_chain_pem.write_to_path(str(path))
        return str(path)

    def crl(self, *revoked: str) -> str:
        """A revocation list with these certificates."""
        key = serialization.load_pem_private_key(self.authority.private_key_pem.bytes(), None)
        issuer = x509.load_pem_x509_certificate(self.authority.cert_pem.bytes())
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(issuer.subject)
            .last_update(at(-2))
            .next_update(at(-1))
        )
        for file in revoked:
            certificate = x509.load_pem_x509_certificate(Path(file).read_bytes())
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(certificate.serial_number)
                .revocation_date(at(-3))
                .build()
            )
        signed: Any = builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]
        path = self.folder / "crl.pem"
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        return str(path)

    @property
    def ca(self) -> str:
        """The authority's certificate."""
        return str(self.folder / "ca.pem")


@pytest.fixture
def works(tmp_path: Path) -> Works:
    """An authority."""
    return Works(tmp_path)


def tls_of(file: str, **more: Any) -> ServerTls:
    """A listener's TLS with one file for certificate and key."""
    return ServerTls(ListenerTls(certificate=file, key=file, **more))


class Secured:
    """The end of a connection that dialled, with the methods of a stream."""

    def __init__(self, sock: socket.socket, layer: Any) -> None:
        self.layer = layer
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(sock))

    async def send_all(self, data: bytes) -> None:
        await self._stream.send_all(self.layer.send(data))

    async def receive_some(self) -> bytes:
        """The next bytes, b"" at the end."""
        found = b""
        while not found and not self.layer.ended:
            found = self.layer.receive(await self._stream.receive_some())
        return bytes(found)

    async def aclose(self) -> None:
        await self._stream.send_all(self.layer.close())
        await self._stream.aclose()


async def shaken(port: int, context: Any, host: str = "localhost") -> Secured:
    """A connection that shook hands."""
    sock = socket.create_connection(("127.0.0.1", port))
    try:
        with trio.fail_after(PATIENCE_S):
            return Secured(sock, await shake_hands(sock, context, host))
    except BaseException:
        sock.close()
        raise


async def dialled(
    port: int, client_cert: str | None = None, host: str = "localhost", **rules: Any
) -> Any:
    """A connection that shook hands."""
    shown = ClientCertRemoteAuthentication(certificate=client_cert, key=client_cert)
    context = client_context(TlsServerCert(**rules), shown)
    return await shaken(port, context, host)


async def echoed(stream: Any) -> bytes:
    """What comes back for one byte."""
    with trio.fail_after(PATIENCE_S):
        await stream.send_all(b"x")
        return bytes(await stream.receive_some())


@pytest.mark.parametrize("host", ["localhost", "localhost.", "127.0.0.1", "::1", "::1%lo"])
async def test_a_certificate_that_names_the_host(works: Works, door: Any, host: str) -> None:
    """Host names and addresses are found in the certificate, and the connection carries data."""
    async with door(tls_of(works.issue("s.pem", "localhost", "127.0.0.1", "::1"))) as opened:
        stream = await dialled(opened.port, host=host, ca=works.ca)
        assert await echoed(stream) == b"x"
        assert stream.layer.version == "TLSv1.3"
        await stream.aclose()


EXPIRED = {"not_before": at(-10), "not_after": at(-1)}
EARLY = {"not_before": at(1), "not_after": at(10)}


@pytest.mark.parametrize(
    ("names", "issued", "rules", "why"),
    [
        (["localhost"], EXPIRED, {}, "certificate verify failed: certificate has expired"),
        (["localhost"], EARLY, {}, "certificate verify failed: certificate is not yet valid"),
        (["else"], {}, {}, "certificate verify failed: Hostname mismatch, .* for 'localhost'$"),
        (["localhost"], EXPIRED, {"validate_date_enabled": False}, ""),
        (["localhost"], EARLY, {"validate_date_enabled": False}, ""),
        (["else"], {}, {"validate_name_enabled": False}, ""),
        (["localhost"], {"common_name": "core"}, {"trusted_common_names": ["x", "core"]}, ""),
        (
            ["localhost"],
            {"common_name": "core"},
            {"trusted_common_names": ["edge"]},
            "the common name of the remote's certificate is not trusted .*CN=core",
        ),
    ],
)
async def test_rules_for_the_remotes_certificate(
    works: Works, door: Any, names: list[str], issued: Any, rules: Any, why: str
) -> None:
    """Dates, name and common name count as configured, and the reason is one line."""
    async with door(tls_of(works.issue("s.pem", *names, **issued))) as opened:
        if not why:
            stream = await dialled(opened.port, ca=works.ca, **rules)
            assert await echoed(stream) == b"x"
            await stream.aclose()
            return
        with pytest.raises(OperationError, match=f"^TLS handshake failed: {why}") as caught:
            await dialled(opened.port, ca=works.ca, **rules)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", ["", ".x"])
async def test_what_is_no_host_name(works: Works, door: Any, host: str) -> None:
    """A name that no certificate could hold is one clear error."""
    async with door(tls_of(works.issue("s.pem", "localhost"))) as opened:
        with pytest.raises(OperationError, match="not a host name"):
            await dialled(opened.port, host=host, ca=works.ca)


@pytest.mark.parametrize("own_authority", [True, False])
async def test_an_untrusted_issuer(
    works: Works, door: Any, tmp_path: Path, capfd: Any, own_authority: bool
) -> None:
    """An authority that is not trusted here is told at both ends."""
    folder = tmp_path / "other"
    folder.mkdir()
    other = Works(folder)
    async with door(tls_of(other.issue("s.pem", "localhost"))) as opened:
        with pytest.raises(OperationError, match=r"verify failed: untrusted issuer \(.*issuer"):
            await dialled(opened.port, ca=works.ca if own_authority else None)
        said = await stderr_of(capfd)
        assert f"vpnrouter: test listener 127.0.0.1:{opened.port}: TLS handshake with 127" in said
        assert "the client refused our certificate: it does not trust the issuer" in said
        assert opened.router.protocol_errors == 1


async def stderr_of(capfd: Any) -> str:
    """What was written to stderr once something was."""
    with trio.fail_after(PATIENCE_S):
        while not (said := capfd.readouterr().err):  # noqa: ASYNC110 - a pipe tells nobody
            await trio.sleep(0.01)
    return str(said)


@pytest.mark.parametrize("most", [0, 1])
async def test_the_length_of_the_chain(works: Works, door: Any, most: int) -> None:
    """Certificates between the remote's own and the authority's are counted."""
    below = works.authority.create_child_ca()
    async with door(tls_of(works.issue("s.pem", "localhost", issuer=below))) as opened:
        if most:
            stream = await dialled(opened.port, ca=works.ca, max_chain_depth=most)
            await stream.aclose()
            return
        with pytest.raises(OperationError, match="certificate chain too long: 1 between"):
            await dialled(opened.port, ca=works.ca, max_chain_depth=most)


async def test_a_subordinate_authority_may_be_the_trusted_one(
    works: Works, door: Any, tmp_path: Path
) -> None:
    """Who stands in the file is trusted, with the root or without."""
    below = works.authority.create_child_ca()
    below.cert_pem.write_to_path(str(tmp_path / "below.pem"))
    async with door(tls_of(works.issue("s.pem", "localhost", issuer=below))) as opened:
        stream = await dialled(opened.port, ca=str(tmp_path / "below.pem"), max_chain_depth=0)
        await stream.aclose()


async def test_a_revoked_remote(works: Works, door: Any) -> None:
    """A revocation list is asked, an old one too; without one of the issuer nobody is let through."""
    file = works.issue("s.pem", "localhost")
    async with door(tls_of(file)) as opened:
        with pytest.raises(OperationError, match="certificate verify failed: CRL has expired"):
            await dialled(opened.port, ca=works.ca, crl=works.crl())
        timeless: dict[str, Any] = {"ca": works.ca, "validate_date_enabled": False}
        await (await dialled(opened.port, crl=works.crl(), **timeless)).aclose()
        with pytest.raises(OperationError, match="certificate verify failed: certificate revoked"):
            await dialled(opened.port, crl=works.crl(file), **timeless)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\x00\x00\x00\x05hello", "does not speak TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS"),
        (b"", "without a word of TLS: the port does not speak TLS, or nobody is let in"),
    ],
)
async def test_no_tls_at_the_other_side(works: Works, answer: bytes, why: str) -> None:
    """Plain answers, or none, are told as such."""

    async def plain(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        if answer:
            await stream.send_all(answer)
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, plain, [listener])
        with pytest.raises(OperationError, match=f"^TLS handshake failed: .*{why}$"):
            await dialled(listener.socket.getsockname()[1], ca=works.ca)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
async def test_the_remote_refuses_our_certificate(
    works: Works,
    door: Any,
    tmp_path: Path,
    capfd: Any,
    version: str,
) -> None:
    """TLS 1.2 says so in the handshake, TLS 1.3 at the first read; both ends tell the same story."""
    folder = tmp_path / "other"
    folder.mkdir()
    stranger = Works(folder).issue("c.pem", common_name="app")
    tls = tls_of(works.issue("s.pem", "localhost"), client_ca=works.ca)
    tls.context.maximum_version = ssl.TLSVersion[version]
    why = "the remote refused our certificate: it does not trust the issuer"
    async with door(tls) as opened:
        if version == "TLSv1_2":
            with pytest.raises(OperationError, match=why):
                await dialled(opened.port, stranger, ca=works.ca)
        else:
            stream = await dialled(opened.port, stranger, ca=works.ca)
        assert "certificate verify failed: untrusted issuer" in await stderr_of(capfd)
        if version == "TLSv1_3":
            # Whoever goes on talking is not reset before he has heard the reason.
            for _ in range(3):
                await stream.send_all(b"x")
            with trio.fail_after(PATIENCE_S):
                assert await stream.receive_some() == b""
            assert stream.layer.failure == why
            await stream.aclose()
        assert opened.heard == []


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("ca", "no PEM", "cannot use authorities .*x.pem: "),
        ("ca", None, "cannot use authorities .*x.pem: No such file"),
        ("crl", "no PEM", "cannot use revocation lists .*x.pem: "),
        ("crl", None, "cannot use revocation lists .*x.pem: No such file"),
    ],
)
def test_files_that_cannot_be_used(
    works: Works, tmp_path: Path, key: str, text: str | None, words: str
) -> None:
    """A file that is missing or no PEM is one OperationError that names it."""
    path = tmp_path / "x.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(OperationError, match=words):
        client_context(TlsServerCert.model_validate({"ca": works.ca, key: str(path)}))


def test_a_certificate_to_show_that_cannot_be_used(works: Works) -> None:
    """A key that is not the certificate's is one OperationError that names both."""
    one, other = works.issue("1.pem", "a"), works.issue("2.pem", "b")
    shown = ClientCertRemoteAuthentication(certificate=one, key=other)
    with pytest.raises(OperationError, match=r"cannot use certificate .*1.pem with key .*2.pem: "):
        client_context(TlsServerCert(ca=works.ca), shown)


async def test_cipher_suites(works: Works, door: Any) -> None:
    """With TLS 1.2 one of the list is agreed on, or none, which is told."""
    tls = tls_of(works.issue("s.pem", "localhost"))
    tls.context.maximum_version = ssl.TLSVersion.TLSv1_2
    wanted = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384"
    async with door(tls) as opened:
        context = client_context(TlsServerCert(ca=works.ca), None, wanted)
        stream = await shaken(opened.port, context)
        assert stream.layer.cipher in wanted.split(":")
        await stream.aclose()
        tls.context.set_ciphers("ECDHE+CHACHA20")
        with pytest.raises(OperationError, match="found nothing in common"):
            await shaken(opened.port, context)
