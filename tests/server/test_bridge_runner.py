"""The task of one bridge, between two routers inside the test."""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from vpnrouter.bridges.bridge import Inbound
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.configured_bridge import subscriptions
from vpnrouter.errors import OperationError
from vpnrouter.management.server_hooks import ServerHooks
from vpnrouter.management.status.clients import Clients
from vpnrouter.management.status.stats_baseline import EndpointBaselines
from vpnrouter.server.net import dial
from vpnrouter.server.net.dial import Dialler, transport_of
from vpnrouter.server.net.reactor import shown_address

CORE = """
listeners: [{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: yellow}]
msg_vpns:
  yellow:
    authentication: {basic: {enabled: false}}
    bridges:
      from-blue:
        remote_authentication: {basic: {client_username: core}}
        remote_msg_vpns: [{name: blue, location: "LOCATION"}]
        remote_subscriptions: ["weather/>"]
"""


def core(location: str) -> str:
    """The router with the bridge."""
    return CORE.replace("LOCATION", location)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("127.0.0.1:1", "cannot connect to 127.0.0.1:1: Connection refused"),
        ("no-such-host.invalid:5", "cannot look up no-such-host.invalid: "),
        ("a" * 64 + ":5", "cannot look up " + "a" * 64 + ": "),
        ("a..b:5", "cannot look up a..b: "),
        ("v:elsewhere", "no link to router elsewhere"),
    ],
)
async def test_remotes_that_cannot_be_reached(
    running: Any, location: str, reason: str, until: Any
) -> None:
    """Each way to miss a remote is told in the bridge's failure reason, and the router serves on."""
    async with running(core(location), "core") as node:
        record = node.bridges[0].record
        await until(lambda: record.failures > 1)
        assert record.inbound_failure_reason.startswith(reason)


@pytest.mark.parametrize(
    ("syntax", "topic", "asked"),
    [
        ("smf", "a/*/>", ["a/*/>"]),
        ("mqtt", "a/+/c", ["a/*/c"]),
        ("mqtt", "#", [">"]),
        ("mqtt", "a/#", ["a", "a/>"]),
    ],
)
def test_subscriptions_in_the_link_s_dialect(syntax: str, topic: str, asked: list[str]) -> None:
    """MQTT filters become what matches the same topics in `*` `>` dialect."""
    written = Bridge.model_validate({"topic_syntax": syntax, "remote_subscriptions": [topic]})
    assert sorted(text for _, text in subscriptions(written)) == asked


async def test_an_address_that_swallows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several addresses of a remote, one that never answers does not keep the next from being tried."""
    monkeypatch.setattr(dial, "CONNECT_S", 0.4)
    with socket.socket() as silent, socket.create_server(("127.0.0.1", 0)) as good:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        # Its queue is full: the kernel drops what else wants in.
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(silent.getsockname())
            fillers.append(filler)
        found: list[tuple[int, int, int, str, object]] = [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", address)
            for address in (silent.getsockname(), good.getsockname())
        ]
        connected = await dial._connect(found)
        assert connected.getpeername() == good.getsockname()
        for sock in (connected, *fillers):
            sock.close()


# -- failback --------------------------------------------------------------------------------------


FIRST = {"name": "blue", "location": "one", "connect_order": 1}
SECOND = {"name": "blue", "location": "two", "connect_order": 2}


class Crossing:
    """A bridge on core into yellow that takes its messages from blue, on one or on two."""

    def __init__(self, sea: Any) -> None:
        self.sea = sea
        self.core = sea.island("core", "yellow")
        self.one = sea.island("one", "blue")
        self.two = sea.island("two", "blue")
        self.next = 0

    def start(self, *remotes: dict[str, Any], **connection: Any) -> Any:
        """Run the bridge."""
        written = {"remote_msg_vpns": remotes or (SECOND, FIRST), "remote_connection": connection}
        return self.core.bridge(written)

    async def publish(self) -> None:
        """Publish the same numbers on both remotes."""
        while True:
            self.one.publish(self.next)
            self.two.publish(self.next)
            self.next += 1
            await trio.sleep(0.01)

    @property
    def uses(self) -> str:
        """The remote in use, "" while there is none."""
        runner = self.core.runner
        if runner.record.inbound_state is not Inbound.READY_IN_SYNC:
            return ""
        return str(runner.machine.use.remote.location)


@pytest.fixture
def cross(voyage: Any) -> Callable[..., None]:
    """Runs `async tell(crossing)`."""

    def run(tell: Callable[[Crossing], Any], seed: int = 1, most_s: float = 0.005) -> None:
        async def begin(sea: Any) -> None:
            await tell(Crossing(sea))

        voyage(begin, seed, most_s)

    return run


@pytest.mark.parametrize("seed", range(4))
def test_back_to_the_better_one(cross: Any, seed: int) -> None:
    """After the delay the bridge goes back; what was on the way arrives, nothing twice."""

    async def tell(crossing: Crossing) -> None:
        crossing.sea.down.add("one")
        crossing.start(failback_delay=5, retry_delay=1)
        await crossing.sea.until(lambda: crossing.uses == "two")
        await trio.sleep(3)
        crossing.sea.nursery.start_soon(crossing.publish)
        await trio.sleep(1)
        crossing.sea.down.clear()
        back_s = trio.current_time()
        await crossing.sea.until(lambda: crossing.uses == "one")
        assert 5 <= trio.current_time() - back_s <= 8
        last = crossing.next
        await trio.sleep(2)
        before, after = crossing.core.numbers("two"), crossing.core.numbers("one")
        assert before == list(range(len(before)))
        assert after == list(range(after[0], after[-1] + 1))
        assert after[-1] >= last
        assert before[-1] < after[0] <= before[-1] + 60, "the gap is no longer than two ways"
        assert [cable.acceptor for cable in crossing.sea.standing()] == ["one"]
        assert crossing.two.vpn.subscription_count == 1

    cross(tell, seed, 0.2)


# -- connect ---------------------------------------------------------------------------------------


def dialler() -> Dialler:
    """A dialler without a router; nothing here is served."""
    nobody: Any = None
    return Dialler(nobody)


async def test_a_name_that_hangs(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """A name server that never answers is given up, and the name told."""

    async def never(*args: Any, **kwargs: Any) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(trio.to_thread, "run_sync", never)
    with pytest.raises(OperationError) as told:
        await dialler().open("no-such-host.invalid", 1, None, lambda: None)
    assert str(told.value) == "cannot look up no-such-host.invalid: no answer within 10 s"


async def test_an_address_that_never_answers(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """A connection that does not come about in time is given up, its socket closed."""
    made: list[Any] = []

    class Silent:
        closed = False

        async def connect(self, address: object) -> None:
            await trio.sleep_forever()

        def close(self) -> None:
            self.closed = True

    def silent(*args: object) -> Silent:
        made.append(Silent())
        return made[-1]

    monkeypatch.setattr(dial.trio.socket, "socket", silent)
    with pytest.raises(OperationError) as told:
        await dialler().open("192.0.2.1", 5, None, lambda: None)
    assert str(told.value) == "cannot connect to 192.0.2.1:5: no answer within 10 s"
    assert [sock.closed for sock in made] == [True]


# -- transport -------------------------------------------------------------------------------------


LISTENERS = """
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}
  - {{protocol: mqtt, bind: "[::1]:0", msg_vpn: blue}}
  - {{protocol: mqtts, bind: "127.0.0.1:0", msg_vpn: blue,
      tls: {{certificate: "{pem}", key: "{key}"}}}}
msg_vpns: {{blue: {{authentication: {{basic: {{enabled: false}}}}}}}}
"""


@pytest.mark.parametrize("index", [0, 1, 2])
async def test_a_client(
    running: Any, client_type: Any, tmp_path: Path, index: int, until: Any
) -> None:
    """Host and port of the client's own socket; the TLS version where there is one."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    pem, key = tmp_path / "c.pem", tmp_path / "c.key"
    pem.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(key)
    async with running(LISTENERS.format(pem=pem, key=key)) as node:
        host, _, port = node.addresses[index][1].rpartition(":")
        plain = await trio.open_tcp_stream(host.strip("[]"), int(port))
        stream: Any = plain
        if index == 2:
            context = ssl.create_default_context()
            authority.configure_trust(context)
            stream = trio.SSLStream(plain, context, server_hostname="localhost")
        client = client_type(stream)
        await client.connect("c")
        clients = Clients(node.book, ServerHooks(transport=transport_of), EndpointBaselines())
        row = clients.client("blue", "c")
        assert row is not None
        assert row.client_address == shown_address(plain.socket.getsockname())
        assert row.tls_version == ("TLSv1.3" if index == 2 else "")
        session = node.router.vpns["blue"].clients["c"]
        connection = session.connection
        await stream.aclose()
        await until(lambda: "c" not in node.router.vpns["blue"].clients)
        assert transport_of(connection)[0] == host.strip("[]")
