"""TLS of listeners: client certificates, revocation, resumed sessions, and files read again."""

import datetime as dt
import errno
import hashlib
import select
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vpnrouter import limits
from vpnrouter.config.settings_models import ListenerTls
from vpnrouter.core.router import Router
from vpnrouter.errors import OperationError
from vpnrouter.server.net.listeners import (
    ListenerLayers,
    MqttAcceptor,
    bind,
    bind_all,
    reload_tls,
)
from vpnrouter.server.net.reactor import Reactor
from vpnrouter.server.net.tls import (
    HandshakeFailures,
    ServerTls,
    certificate_of,
    tls_reason,
)
from vpnrouter.trace.recorder import Recorder
from vpnrouter.wire.link import encode as link_encode
from vpnrouter.wire.link import frames
from vpnrouter.wire.link.decode import decode as link_decode
from vpnrouter.wire.link.decode import link_frame_at
from vpnrouter.wire.mqtt.packets import Publish

PATIENCE_S = 20.0


def at(days: float) -> dt.datetime:
    """So many days from now."""
    return dt.datetime.now(dt.UTC) + dt.timedelta(days=days)


class Works:
    """Authorities of a listener and of its clients, with their files in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers = trustme.CA()
        self.clients = trustme.CA()
        self.renew()
        self.clients.cert_pem.write_to_path(str(folder / "clients.pem"))

    def renew(self) -> None:
        """Write another certificate for the listener."""
        issued = self.servers.issue_cert("localhost")
        issued.private_key_and_cert_chain_pem.write_to_path(str(self.folder / "s.pem"))

    def revoke(self, *certificates: trustme.LeafCert) -> None:
        """Write the revocation list of the clients' authority."""
        key: Any = serialization.load_pem_private_key(self.clients.private_key_pem.bytes(), None)
        issuer = x509.load_pem_x509_certificate(self.clients.cert_pem.bytes())
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(issuer.subject)
            .last_update(at(-1))
            .next_update(at(1))
        )
        for one in certificates:
            certificate = x509.load_pem_x509_certificate(one.cert_chain_pems[0].bytes())
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder()
                .serial_number(certificate.serial_number)
                .revocation_date(at(-1))
                .build()
            )
        signed = builder.sign(key, hashes.SHA256())
        (self.folder / "crl.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def written(self, *, crl: bool = False, **more: Any) -> ListenerTls:
        """The listener's configuration, with client certificates."""
        file = f"{self.folder}/s.pem"
        return ListenerTls(
            certificate=file,
            key=file,
            client_ca=f"{self.folder}/clients.pem",
            client_crl=f"{self.folder}/crl.pem" if crl else None,
            **more,
        )

    def context(self, shown: trustme.LeafCert | None = None) -> ssl.SSLContext:
        """A client's context."""
        context = ssl.create_default_context()
        self.servers.configure_trust(context)
        if shown is not None:
            shown.configure_cert(context)
        return context

    def client(self, name: str, **more: Any) -> trustme.LeafCert:
        """A client's certificate."""
        return self.clients.issue_cert(common_name=name, **more)


@pytest.fixture
def works(tmp_path: Path) -> Works:
    """Authorities with their files."""
    return Works(tmp_path)


async def opened(port: int, context: ssl.SSLContext) -> Any:
    """A TLS stream, shaken hands as far as the client can tell."""
    plain = await trio.open_tcp_stream("127.0.0.1", port)
    stream = trio.SSLStream(plain, context, server_hostname="localhost", https_compatible=True)
    try:
        await stream.do_handshake()
    except trio.BrokenResourceError:
        await plain.aclose()
        raise
    return stream


async def tried(port: int, context: ssl.SSLContext) -> bool:
    """Whether the listener goes on after the handshake: one byte comes back."""
    with trio.fail_after(PATIENCE_S):
        stream = None
        try:
            stream = await opened(port, context)
            await stream.send_all(b"x")
            return bool(await stream.receive_some())
        except trio.BrokenResourceError:
            return False
        finally:
            if stream is not None:
                await trio.aclose_forcefully(stream)


async def test_connections_know_their_certificates(works: Works, door: Any) -> None:
    """Each connection has its client's verified chain, or None where it showed none."""
    below = works.clients.create_child_ca().issue_cert(common_name="bob")
    async with door(ServerTls(works.written())) as listening:
        assert await tried(listening.port, works.context(works.client("ann")))
        assert await tried(listening.port, works.context())
        assert await tried(listening.port, works.context(below))
        found = listening.made.pop().certificate
        assert (found.common_name, found.chain_depth) == ("bob", 1)
        der = ssl.PEM_cert_to_DER_cert(below.cert_chain_pems[0].bytes().decode())
        assert found.thumbprint == hashlib.sha256(der).hexdigest()
        assert [one.certificate and one.certificate.common_name for one in listening.made] == [
            "ann",
            None,
        ]
    async with door(None) as listening:
        stream = await trio.open_tcp_stream("127.0.0.1", listening.port)
        await stream.send_all(b"x")
        assert await stream.receive_some() == b"x"
        assert listening.made[0].certificate is None
        await stream.aclose()


@pytest.mark.parametrize("days", [(-10, -1), (1, 10)])
async def test_dates_are_left_to_the_login(
    works: Works, door: Any, days: tuple[float, float]
) -> None:
    """An expired certificate, or one of tomorrow, passes the handshake with its dates."""
    shown = works.client("ann", not_before=at(days[0]), not_after=at(days[1]))
    async with door(ServerTls(works.written())) as listening:
        assert await tried(listening.port, works.context(shown))
        certificate = listening.made[0].certificate
        now_ns = at(0).timestamp() * 1e9
        assert not certificate.not_before_ns <= now_ns <= certificate.not_after_ns


async def test_revoked_clients(works: Works, door: Any, capfd: Any) -> None:
    """A certificate on the list is refused with a line that says so; others go on."""
    good, bad = works.client("good"), works.client("bad")
    works.revoke(bad)
    async with door(ServerTls(works.written(crl=True))) as listening:
        assert await tried(listening.port, works.context(good))
        assert not await tried(listening.port, works.context(bad))
        assert [one.certificate.common_name for one in listening.heard] == ["good"]
    said = capfd.readouterr().err
    assert said.endswith("failed: certificate verify failed: certificate revoked\n")
    assert said.count("\n") == 1


def test_a_list_with_certificates_in_it(works: Works) -> None:
    """A revocation list must not smuggle an authority in."""
    works.revoke()
    crl = works.folder / "crl.pem"
    crl.write_bytes(crl.read_bytes() + trustme.CA().cert_pem.bytes())
    with pytest.raises(OperationError, match=r"crl\.pem: it holds certificates as well"):
        ServerTls(works.written(crl=True))


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
async def test_resumed_sessions(works: Works, door: Any, version: str) -> None:
    """A client that resumes its session is who it was, until the files are read again."""
    context = works.context(works.client("ann"))
    context.maximum_version = ssl.TLSVersion[version]
    tls = ServerTls(works.written())

    async def visit(session: Any) -> tuple[Any, bool]:
        plain = await trio.open_tcp_stream("127.0.0.1", listening.port)
        stream: Any = trio.SSLStream(plain, context, server_hostname="localhost")
        if session is not None:
            stream.session = session
        await stream.send_all(b"x")
        assert await stream.receive_some() == b"x"
        found = stream.session, stream.session_reused
        # With a word of farewell: OpenSSL forgets sessions that break off.
        await stream.aclose()
        return found

    async with door(tls) as listening:
        session, _ = await visit(None)
        _, resumed = await visit(session)
        assert resumed is (version == "TLSv1_2")
        names = [one.certificate.common_name for one in listening.made]
        assert names == ["ann", "ann"]
        tls.reload()
        _, resumed = await visit(session)
        assert not resumed


async def test_remembered_peers_are_bounded(
    works: Works, door: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TLS_REMEMBERED_PEERS certificates are remembered, and the oldest goes first."""
    monkeypatch.setattr(limits, "TLS_REMEMBERED_PEERS", 2)
    tls = ServerTls(works.written())
    shown = {name: works.client(name) for name in "abc"}
    async with door(tls) as listening:
        for name in "abac":
            assert await tried(listening.port, works.context(shown[name]))
    assert [one.common_name for one in tls._seen.values()] == ["a", "c"]


@pytest.mark.parametrize("file", ["s.pem", "clients.pem", "crl.pem"])
async def test_files_that_went_bad(works: Works, door: Any, file: str) -> None:
    """A reload that cannot use a file names it and leaves everything as it was."""
    works.revoke()
    tls = ServerTls(works.written(crl=True))
    context = works.context(works.client("ann"))
    before = tls.context
    (works.folder / file).write_text("not PEM")
    with pytest.raises(OperationError, match=f"cannot use .*{file}"):
        tls.reload()
    assert tls.context is before
    async with door(tls) as listening:
        assert await tried(listening.port, context)


def test_all_listeners_or_none(works: Works, configured: Any) -> None:
    """Where one listener's file cannot be used, no listener changes."""
    good = f"certificate: {works.folder}/s.pem, key: {works.folder}/s.pem"
    (works.folder / "t.pem").write_bytes((works.folder / "s.pem").read_bytes())
    config = configured(
        f"""
listeners:
  - {{protocol: mqtts, bind: "127.0.0.1:0", msg_vpn: blue, tls: {{{good}}}}}
  - {{protocol: links, bind: "127.0.0.1:0", tls: {{{good.replace("s.pem", "t.pem")}}}}}
  - {{protocol: link, bind: "127.0.0.1:0"}}
msg_vpns: {{blue: }}
"""
    )
    bound = bind_all(config.listeners)
    before = [one.context and one.context.context for one in bound]
    (works.folder / "t.pem").write_text("not PEM")
    with pytest.raises(OperationError, match=r"t\.pem"):
        reload_tls(bound)
    assert [one.context and one.context.context for one in bound] == before
    works.renew()
    (works.folder / "t.pem").write_bytes((works.folder / "s.pem").read_bytes())
    reload_tls(bound)
    after = [one.context and one.context.context for one in bound]
    assert before[0] is not after[0]
    assert before[1] is not after[1]
    assert bound[2].context is None
    for one in bound:
        one.sock.close()


async def test_somebody_who_only_looks(works: Works, door: Any, capfd: Any) -> None:
    """A check that connects and closes is no failed handshake."""
    async with door(ServerTls(works.written()), most=1) as listening:
        for _ in range(3):
            stream = await trio.open_tcp_stream("127.0.0.1", listening.port)
            await stream.aclose()
        with trio.fail_after(PATIENCE_S):
            while not await tried(listening.port, works.context()):
                # The place of one who looked may not be free yet.
                await trio.testing.wait_all_tasks_blocked(0.01)
        assert listening.router.protocol_errors == 0
    assert capfd.readouterr().err == ""


async def test_clients_log_in_with_certificates(
    works: Works, running: Any, client_type: Callable[..., Any], port: Any
) -> None:
    """In a whole router the certificate names the client username, which the ACL profile knows."""
    text = f"""
listeners:
  - protocol: mqtts
    bind: "127.0.0.1:0"
    msg_vpn: blue
    tls:
      certificate: {works.folder}/s.pem
      key: {works.folder}/s.pem
      client_ca: {works.folder}/clients.pem
msg_vpns:
  blue:
    authentication:
      basic: {{enabled: false}}
      client_cert: {{enabled: true}}
    acl_profiles:
      own:
        client_connect: {{default_action: allow}}
        publish_topic: {{default_action: disallow, exceptions: [$client-username/>]}}
        subscribe_topic: {{default_action: allow}}
    client_usernames: {{ann: {{acl_profile: own}}}}
"""
    cases = [
        (works.client("ann"), "", 0),
        (None, "403 Basic Authentication is Shutdown", 0x87),
        (works.client("bob"), "403 Forbidden: the certificate names no client username", 0x87),
        (works.client("ann", not_after=at(-1)), "403 Certificate Expired", 0x87),
        (works.client("ann", not_before=at(1)), "403 Certificate Not Yet Valid", 0x87),
    ]
    async with running(text) as node:
        for shown, why, code in cases:
            stream = await opened(port(node, "mqtts"), works.context(shown))
            client = client_type(stream)
            answer = await client.connect("c")
            assert (answer.reason_code, answer.properties.reason_string or "") == (code, why)
            if not code:
                await client.subscribe("#")
                await client.publish("bob/x", b"no")
                await client.publish("ann/x", b"yes")
                packet = await client.packet()
                assert isinstance(packet, Publish)
                assert packet.payload == b"yes"
            await trio.aclose_forcefully(stream)


async def refused_link(stream: Any, vpn: str) -> str:
    """Log in as a bridge by certificate to `vpn`: the reason of the refusal, "" for none."""
    hello = frames.Hello("core", "from", "yellow", vpn, scheme=frames.CLIENT_CERTIFICATE, tls=True)
    await stream.send_all(link_encode.hello(hello))
    have = b""
    with trio.fail_after(PATIENCE_S):
        while not (length := link_frame_at(have, 0, len(have), limits.LINK_FRAME_BYTES)):
            have += await stream.receive_some()
    answer = link_decode(have, 0, length)
    assert isinstance(answer, frames.Welcome | frames.Refuse)
    return answer.reason if isinstance(answer, frames.Refuse) else ""


async def test_authorities_of_a_message_vpn(
    works: Works,
    running: Any,
    configured: Any,
    client_type: Callable[..., Any],
    port: Any,
    capfd: Any,
) -> None:
    """A listener of several tenants takes the certificates of all, a message VPN those of its own authority alone.

    A certificate of another authority is like one that names nobody, and the message VPN like none, for clients
    and bridges, directly issued or below a subordinate authority; a reload reads the authorities again, and
    changes nothing where it cannot.
    """
    folder = works.folder
    others = trustme.CA()
    below = works.clients.create_child_ca()
    both = folder / "both.pem"
    both.write_bytes(works.clients.cert_pem.bytes() + others.cert_pem.bytes())
    (folder / "blue.pem").write_bytes(works.clients.cert_pem.bytes())
    (folder / "red.pem").write_bytes(others.cert_pem.bytes())
    tls = f"{{certificate: {folder}/s.pem, key: {folder}/s.pem, client_ca: {both}}}"
    vpn = """
  {0}:
    authentication: {{basic: {{enabled: false}}, client_cert: {{enabled: true, ca: {1}/{0}.pem}}}}
    client_profiles: {{default: {{allow_bridge_connections_enabled: true}}}}
    client_usernames: {{ann: {{}}}}
"""
    vpns = "".join(vpn.format(name, folder) for name in ("blue", "red"))
    text = f"""
logging: {{levels: {{client: info, bridge: info}}}}
listeners:
  - {{protocol: mqtts, bind: "127.0.0.1:0", tls: {tls}}}
  - {{protocol: links, bind: "127.0.0.1:0", tls: {tls}}}
msg_vpns:{vpns}
"""
    ann = works.client("ann")
    other_ann = others.issue_cert(common_name="ann")
    nobody = others.issue_cert(common_name="nobody")
    below_ann = below.issue_cert(common_name="ann")
    reason = "403 Forbidden"
    async with running(text) as node:

        async def refused(shown: trustme.LeafCert, vpn: str) -> set[str]:
            """What client and bridge are told."""
            stream = await opened(port(node, "mqtts"), works.context(shown))
            client = client_type(stream)
            answer = await client.connect("c", username=f"@{vpn}")
            await trio.aclose_forcefully(stream)
            stream = await opened(port(node, "links"), works.context(shown))
            link = await refused_link(stream, vpn)
            await trio.aclose_forcefully(stream)
            return {answer.properties.reason_string or "", link}

        for shown, vpn_name, told in [
            (ann, "blue", ""),
            (below_ann, "blue", ""),
            (other_ann, "blue", reason),
            (nobody, "red", reason),
            (ann, "red", reason),
            (below_ann, "red", reason),
            (other_ann, "red", ""),
            (ann, "none", reason),
        ]:
            assert await refused(shown, vpn_name) == {told}, (vpn_name, told)
        assert "the certificate is of no authority in client_cert.ca" in capfd.readouterr().err

        (folder / "blue.pem").write_bytes(others.cert_pem.bytes())
        assert node.reload(configured(text)) == []
        assert await refused(ann, "blue") == {reason}
        assert await refused(other_ann, "blue") == {""}
        fewer = configured(text).model_copy(update={"listeners": ()})
        (folder / "blue.pem").write_bytes(b"nothing")
        with pytest.raises(OperationError, match=r"cannot use authorities .*blue\.pem"):
            node.reload(fewer)
        assert await refused(other_ann, "blue") == {""}
        (line,) = node.reload(configured(text.replace(f", ca: {folder}/blue.pem", "")))
        assert "client_cert.ca" in line
        assert await refused(ann, "blue") == {""}


# -- tls reason ------------------------------------------------------------------------------------


def ssl_error(reason: str) -> ssl.SSLError:
    """An error of OpenSSL with this reason code."""
    error = ssl.SSLError(1, f"[SSL: {reason}] something (_ssl.c:1)")
    error.reason = reason
    return error


def broken(cause: BaseException) -> trio.BrokenResourceError:
    """The error as trio raises it."""
    error = trio.BrokenResourceError()
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("TLSV1_ALERT_UNKNOWN_CA", "she refused our certificate: it does not trust the issuer"),
        ("SSLV3_ALERT_CERTIFICATE_REVOKED", "she refused our certificate: revoked"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "she refused our certificate: bad certificate"),
        (
            "TLSV13_ALERT_CERTIFICATE_REQUIRED",
            "she asks for a client certificate and was given none",
        ),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "she speaks no TLS version that is allowed here"),
        ("WRONG_VERSION_NUMBER", "she does not speak TLS"),
        ("UNEXPECTED_EOF_WHILE_READING", "she closed the connection"),
        ("SOME_NEW_REASON", "some new reason"),
    ],
)
def test_reasons_of_openssl(reason: str, words: str) -> None:
    """Reason codes become words; unknown ones are told as OpenSSL tells them."""
    assert tls_reason(broken(ssl_error(reason)), "she") == words


def test_other_failures() -> None:
    """A transport's error gives the system's words, an error without any a word of its own."""
    reset = ConnectionResetError(errno.ECONNRESET, "x")
    assert tls_reason(broken(reset)) == "Connection reset by peer"
    assert tls_reason(trio.BrokenResourceError("gone")) == "gone"
    assert tls_reason(trio.BrokenResourceError()) == "transport failed"
    assert tls_reason(ssl.SSLEOFError(8, "eof")) == "the remote closed the connection"


# -- handshake failures ----------------------------------------------------------------------------


def test_lines_beyond_the_bound_are_counted() -> None:
    """TLS_FAILURE_LINES a second say who, where and why; the number of the others comes with the next one."""
    lines: list[str] = []
    failures = HandshakeFailures(lines.append)
    for number in range(limits.TLS_FAILURE_LINES + 3):
        failures.note("x", str(number), "no", 10.0 + number / 1000)
    assert len(lines) == limits.TLS_FAILURE_LINES
    assert lines[0] == "vpnrouter: x: TLS handshake with 0 failed: no"
    failures.note("x", "late", "no", 11.0)
    assert lines[limits.TLS_FAILURE_LINES] == "vpnrouter: 3 more TLS handshakes failed before"
    assert "late" in lines[-1]
    failures.note("x", "later", "no", 12.0)
    assert len(lines) == limits.TLS_FAILURE_LINES + 3


# -- peer certificate ------------------------------------------------------------------------------


SECOND_NS = 1_000_000_000


def at_in_peer_certificate(year: int) -> dt.datetime:
    """The beginning of a year."""
    return dt.datetime(year, 1, 1, tzinfo=dt.UTC)


def made(
    subject: x509.Name, names: list[x509.GeneralName], begin: int = 2020, end: int = 2040
) -> bytes:
    """A self-signed certificate in DER."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(at_in_peer_certificate(begin))
        .not_valid_after(at_in_peer_certificate(end))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def test_names_thumbprint_and_dates() -> None:
    """The first common name, DNS names, URIs and e-mail addresses in order, SHA-256, ns."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Works"),
            x509.NameAttribute(NameOID.COMMON_NAME, "first"),
            x509.NameAttribute(NameOID.COMMON_NAME, "second"),
        ]
    )
    der = made(
        subject,
        [
            x509.DirectoryName(subject),
            x509.UniformResourceIdentifier("urn:device:7"),
            x509.DNSName("seven.example"),
            x509.RFC822Name("seven@example.org"),
        ],
    )
    found = certificate_of([der])
    assert found.common_name == "first"
    assert found.san == ("urn:device:7", "seven.example", "seven@example.org")
    assert found.thumbprint == hashlib.sha256(der).hexdigest()
    assert found.not_before_ns == int(at_in_peer_certificate(2020).timestamp()) * SECOND_NS
    assert found.not_after_ns == int(at_in_peer_certificate(2040).timestamp()) * SECOND_NS
    assert found.chain_depth == 0
    assert "O=Works" in found.subject


def test_no_names_at_all() -> None:
    """A certificate without common name and alternate names names nobody."""
    found = certificate_of([made(x509.Name([]), [])])
    assert (found.common_name, found.san) == ("", ())


def test_dates_and_depth_are_those_of_the_chain() -> None:
    """A chain is valid while all of it is; its ends do not count for the depth."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    spans = [(2020, 2040), (2022, 2035), (2021, 2050), (2019, 2060)]
    found = certificate_of([made(name, [], begin, end) for begin, end in spans])
    assert found.not_before_ns == int(at_in_peer_certificate(2022).timestamp()) * SECOND_NS
    assert found.not_after_ns == int(at_in_peer_certificate(2035).timestamp()) * SECOND_NS
    assert found.chain_depth == 2
    assert certificate_of([made(name, [])] * 2).chain_depth == 0


def test_bytes_that_are_no_certificate() -> None:
    """What cannot be read is one OperationError."""
    with pytest.raises(OperationError, match="the certificate cannot be read: "):
        certificate_of([b"0\x03\x02\x01\x07"])


@pytest.mark.skipif(not hasattr(select, "epoll"), reason=f"{sys.platform} has no epoll")
def test_handshakes_that_come_at_once(works: Works) -> None:
    """Clients that shake hands together have their turn in several rounds: others are served in between."""
    count = 100
    context = works.context()
    router = Router("here", 7, Recorder())
    sock = bind("127.0.0.1", 0)
    reactor = Reactor(router)
    layers = ListenerLayers("the listener", ServerTls(works.written()))
    reactor.listen(sock, MqttAcceptor(router, "blue", layers), count)
    ends = [socket.create_connection(sock.getsockname()) for _ in range(count)]
    while len(reactor) < count:
        reactor.round(1.0)
    for end in ends:
        outgoing = ssl.MemoryBIO()
        client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        end.sendall(outgoing.read())
        end.setblocking(False)
    answered: list[int] = []
    waiting = list(ends)
    while waiting:
        reactor.round(1.0)
        left = [end for end in waiting if not select.select([end], [], [], 0.0)[0]]
        answered.append(len(waiting) - len(left))
        waiting = left
    print("answered in each round:", answered)
    assert len(answered) > 2
    for end in ends:
        end.close()
    reactor.close_all()
