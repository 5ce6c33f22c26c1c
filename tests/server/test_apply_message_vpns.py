"""What a reload does to message VPNs, for clients that stay connected meanwhile."""

import copy
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.config.load import read
from vpnrouter.config.secrets import hash_password
from vpnrouter.core.discard_reasons import MSG_TOO_BIG
from vpnrouter.core.message import Message
from vpnrouter.core.mqtt.session import MqttSession, Will
from vpnrouter.core.outbox import Outbox
from vpnrouter.core.subscriber import Subscription
from vpnrouter.server.apply.assemble import build_router, vpn_of
from vpnrouter.server.apply.message_vpn_change import change_message_vpn, remove_message_vpn
from vpnrouter.server.password_verifier import LOGINS
from vpnrouter.server.spool.spool_service import SpoolService
from vpnrouter.spool.store import MemoryStore
from vpnrouter.topics.grammar import MQTT, parse_filter
from vpnrouter.wire.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)

LISTENER = 'listeners: [{protocol: mqtt, bind: "127.0.0.1:0"}]\n'


def blue(text: str = "", vpn: str = "", others: str = "") -> str:
    """A router with message VPN blue; `text` is inside it, `vpn` in its first line."""
    basic = "authentication: {basic: {enabled: false}}"
    return f"{LISTENER}msg_vpns:\n  blue:\n    {vpn or basic}\n{text}{others}"


async def suback(client: Any, *filters: str) -> list[int]:
    """The answer to a SUBSCRIBE."""
    await client.send(Subscribe(1, [SubscriptionRequest(text) for text in filters]))
    answer = await client.packet()
    assert isinstance(answer, Suback)
    return list(answer.reason_codes)


async def gone(client: Any) -> tuple[int, str]:
    """Code and reason of the DISCONNECT that ends the connection."""
    packet = await client.packet()
    assert isinstance(packet, Disconnect)
    assert await client.packet() is None
    return packet.reason_code, packet.properties.reason_string or ""


async def test_bounds_hold_at_once(running: Any, client_of: Any, configured: Any) -> None:
    """Bounds of a message VPN hold for who is connected; nobody notices but by them."""
    async with running(blue()) as node:
        client = await client_of(node)
        await client.connect("c", username="c@blue")
        await client.subscribe("#")
        await client.publish("a/b/c", b"1")
        assert await client.payload() == b"1"
        text = (
            "    max_topic_levels: 2\n    max_subscription_count: 1\n    max_connection_count: 1\n"
        )
        lines = node.reload(configured(blue(text + "    max_retained_msg_count: 0\n")))
        assert len(lines) == 4
        assert lines[0].startswith("msg_vpns.blue.max_connection_count: ")
        assert all(line.endswith("(at once)") for line in lines)
        vpn = node.router.vpns["blue"]
        assert vpn.retained.most == 0
        assert await suback(client, "x") == [0x97]
        second = await client_of(node)
        assert (await second.connect("d", username="d@blue")).reason_code == 0x97
        # The topic was cached, and is too long now.
        await client.publish("a/b/c", b"2")
        assert (await gone(client))[0] == 0x90


async def test_queue_defaults_hold_at_once(running: Any, configured: Any) -> None:
    """They hold for queues that say nothing of it, and for what clients of AMQP make from then on."""
    queues = "    queues: {says: {respect_ttl_enabled: false}, nothing: {}}\n"
    defaults = (
        "    queue_defaults: {respect_msg_priority_enabled: true, respect_ttl_enabled: true}\n"
    )
    async with running(blue(queues)) as node:
        vpn = node.router.vpns["blue"]
        for text, on in (("", False), (defaults, True), ("", False)):
            node.reload(configured(blue(queues + text)))
            for name, lives in (("says", False), ("nothing", on)):
                settings = vpn.queue(name).settings
                assert settings.respect_msg_priority_enabled == on
                assert settings.respect_ttl_enabled == lives
            assert vpn.queue_terms.respect_msg_priority_enabled == on
            assert vpn.queue_terms.respect_ttl_enabled == on


async def test_the_size_of_messages_holds_from_the_next_login(
    running: Any, client_of: Any, configured: Any
) -> None:
    """Whoever is logged in may publish as much as he was told, with properties or without."""
    async with running(blue()) as node:
        client = await client_of(node)
        await client.connect("c", username="c@blue")
        await client.subscribe("#")
        (line,) = node.reload(configured(blue("    max_msg_size: 3\n")))
        assert line.endswith("-> 3 (for logins from now on)")
        await client.send(Publish(b"a", b"12345", retain=True))
        assert await client.payload() == b"12345"
        second = await client_of(node)
        await second.connect("d", username="d@blue")
        await second.publish("a", b"123456")
        await second.publish("a", b"123")
        assert await client.payload() == b"123"
        assert node.router.vpns["blue"].discards.counts[MSG_TOO_BIG] == 1


async def test_profiles(running: Any, client_of: Any, configured: Any) -> None:
    """Counts and permissions of a client profile hold at once, what a connection was made with from the next login."""
    async with running(blue()) as node:
        client = await client_of(node)
        await client.connect("c", username="c@blue")
        assert await suback(client, "$share/g/a") == [0]
        for most in (5, 1):
            shared = "allow_shared_subscriptions_enabled: false, "
            profile = (
                f"{{{shared}max_subscription_count: {most}, max_outbox_bytes: {70000 + most}}}"
            )
            node.reload(configured(blue(f"    client_profiles: {{default: {profile}}}\n")))
        assert await suback(client, "b") == [0x97]
        assert await suback(client, "$share/g/a") == [0x9E]
        await client.publish("a", b"to nobody")
        second = await client_of(node)
        await second.connect("d", username="d@blue")
        assert await suback(second, "$share/g/a") == [0x9E]
        limits = [node.router.vpns["blue"].clients[name].outbox.limit for name in "cd"]
        assert limits[1] == 70001 != limits[0]


async def test_acl_profiles(running: Any, client_of: Any, configured: Any) -> None:
    """A changed ACL profile holds at once: for what is published, for standing subscriptions, and back again."""
    async with running(blue()) as node:
        client, other = await client_of(node), await client_of(node)
        await client.connect("c", username="c@blue")
        await other.connect("o", username="o@blue")
        await client.subscribe("#")
        await other.subscribe("#")
        rules = (
            "{publish_topic: {default_action: allow, exceptions: [p/>]},"
            " subscribe_topic: {default_action: allow, exceptions: [s/>]}}"
        )
        node.reload(configured(blue(f"    acl_profiles: {{default: {rules}}}\n")))
        for topic in ("p/1", "s/1", "free"):
            await client.publish(topic, topic.encode())
        assert await client.payload() == b"free"
        assert await other.payload() == b"free"
        assert await suback(client, "s/#") == [0x87]
        node.reload(configured(blue()))
        for topic in ("p/1", "s/1"):
            await client.publish(topic, topic.encode())
            assert await client.payload() == topic.encode()


async def test_an_address_that_is_shut_out(running: Any, client_of: Any, configured: Any) -> None:
    """A client at an address that its ACL profile does not allow any more is disconnected."""
    async with running(blue()) as node:
        client = await client_of(node)
        await client.connect("c", username="c@blue")
        rules = '{client_connect: {default_action: allow, exceptions: ["127.0.0.0/8"]}}'
        (line,) = node.reload(configured(blue(f"    acl_profiles: {{default: {rules}}}\n")))
        assert line
        assert await gone(client) == (0x98, "403 Forbidden: ACL profile default")


async def test_a_password_holds_from_the_next_login(
    running: Any, client_of: Any, configured: Any, tmp_path: Any
) -> None:
    """A password that a file holds is read again; who is logged in stays."""
    (tmp_path / "secret").write_text("old")
    text = "    client_usernames: {app: {password: {file: SECRET}}}\n"
    text = blue(text.replace("SECRET", str(tmp_path / "secret")), "enabled: true")
    async with running(text) as node:
        first = await client_of(node)
        assert (await first.connect("a", username="app@blue", password=b"old")).reason_code == 0
        (tmp_path / "secret").write_text("new")
        (line,) = node.reload(configured(text))
        assert line.endswith("app.password: *** -> *** (for logins from now on)")
        codes = []
        for number, password in enumerate((b"old", b"new")):
            client = await client_of(node)
            answer = await client.connect(f"b{number}", username="app@blue", password=password)
            codes.append(answer.reason_code)
        assert codes == [0x86, 0]
        await first.subscribe("#")


@pytest.mark.parametrize("after", ["{}", "{app: {password: x, enabled: false}}"])
async def test_a_client_username_that_goes(
    running: Any, client_of: Any, configured: Any, after: str
) -> None:
    """The clients of a client username that is removed or disabled are told and put out, no others."""
    names = "    client_usernames: {%s}\n"
    both = names % "app: {password: x}, other: {password: x}"
    async with running(blue(both, "enabled: true")) as node:
        clients = {}
        for name in ("app", "other"):
            clients[name] = await client_of(node)
            await clients[name].connect(name, username=f"{name}@blue", password=b"x")
        left = names % f"other: {{password: x}}, {after[1:-1]}".removesuffix(", ")
        node.reload(configured(blue(left, "enabled: true")))
        code, why = await gone(clients["app"])
        assert code == 0x98
        assert why == "403 Client Username Is Shutdown: app"
        await clients["other"].subscribe("#")
        again = await client_of(node)
        assert (await again.connect("app", username="app@blue", password=b"x")).reason_code != 0


async def test_a_login_under_way(running: Any, client_of: Any, configured: Any) -> None:
    """Who is removed while his password is verified does not come in."""
    names = f'    client_usernames: {{app: {{password: "{hash_password("x", bytes(16))}"}}}}\n'
    async with running(blue(names, "enabled: true")) as node:
        client = await client_of(node)
        await client.send(Connect("c", protocol_level=5, username="app@blue", password=b"x"))
        with trio.fail_after(20):
            while not any(task.name == LOGINS for task in _tasks()):  # noqa: ASYNC110
                await trio.sleep(0.001)
        node.reload(configured(blue("", "enabled: true")))
        answer = await client.packet()
        assert isinstance(answer, Connack)
        assert answer.reason_code == 0x87
        assert not node.router.vpns["blue"].publishers


def _tasks() -> list[trio.lowlevel.Task]:
    """All tasks of this run."""
    found: list[trio.lowlevel.Task] = []
    waiting = [trio.lowlevel.current_root_task()]
    while waiting:
        task = waiting.pop()
        if task is not None:
            found.append(task)
            waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found


async def test_default_shut(running: Any, client_of: Any, configured: Any) -> None:
    """Disabling `default` puts out those whom it stood in for, and not those with a name of their own."""
    names = "    client_usernames: {own: {}, default: {enabled: %s}}\n"
    async with running(blue(names % "true")) as node:
        own, other = await client_of(node), await client_of(node)
        await own.connect("own", username="own@blue")
        await other.connect("other", username="other@blue")
        node.reload(configured(blue(names % "false")))
        assert (await gone(other))[0] == 0x98
        await own.subscribe("#")


async def test_off_and_on(running: Any, client_of: Any, configured: Any) -> None:
    """A message VPN that is disabled puts everybody out and lets in again when it is enabled."""
    async with running(blue()) as node:
        client = await client_of(node)
        await client.connect("c", username="c@blue")
        (line,) = node.reload(configured(blue("    enabled: false\n")))
        assert line == "msg_vpns.blue.enabled: true -> false (its clients are disconnected)"
        assert (await gone(client))[0] == 0x98
        second = await client_of(node)
        # Whoever may be anybody learns no more than that of a message VPN that is not there.
        assert (await second.connect("c", username="c@blue")).reason_code == 0x86
        assert node.reload(configured(blue())) == ["msg_vpns.blue.enabled: false -> true (at once)"]
        third = await client_of(node)
        assert (await third.connect("c", username="c@blue")).reason_code == 0


async def test_come_and_go(running: Any, client_of: Any, configured: Any) -> None:
    """A message VPN that is added serves at once; one that is removed takes its clients with it."""
    green = "  green: {authentication: {basic: {enabled: false}}}\n"
    async with running(blue()) as node:
        stays = await client_of(node)
        await stays.connect("c", username="c@blue")
        assert node.reload(configured(blue(others=green))) == ["msg_vpns.green: added"]
        client = await client_of(node)
        assert (await client.connect("c", username="c@green")).reason_code == 0
        assert node.reload(configured(blue())) == ["msg_vpns.green: removed"]
        assert (await gone(client))[0] == 0x98
        assert list(node.router.vpns) == ["blue"]
        await stays.subscribe("#")


# -- any change ---------------------------------------------------------------------------------------------


REFERENCE = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "configs" / "reference.yaml").read_text(encoding="utf-8")
)


def numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all whole numbers and switches in plain data."""
    found = []
    for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, (dict, list)):
            found += numbers(inner, (*path, step))
        elif isinstance(inner, int):
            found.append((*path, step))
    return found


PLACES = numbers(REFERENCE["msg_vpns"])


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(PLACES), st.integers(0, 4)), min_size=1, max_size=3),
    st.booleans(),
)
def test_what_is_accepted_starts_and_can_be_changed_to(
    tmp_path_factory: Any, changes: list[tuple[tuple[Any, ...], int]], removed: bool
) -> None:
    """A configuration that is not refused starts, and nothing raises on the way to it or back, sessions in place."""
    wild = copy.deepcopy(REFERENCE)
    for path, value in changes:
        owner = wild["msg_vpns"]
        for step in path[:-1]:
            owner = owner[step]
        known = owner[path[-1]]
        # Bounds are lowered as far as they go; what is out of range is refused and tells nothing.
        least = (0, 1, 2, known // 2, known + 1)[value]
        owner[path[-1]] = not known if isinstance(known, bool) else least
    if removed:
        wild["msg_vpns"]["another"] = wild["msg_vpns"].popitem()[1]
    file = tmp_path_factory.getbasetemp() / "wild.yaml"
    loaded = []
    for data in (REFERENCE, wild):
        file.write_text(yaml.safe_dump(data))
        reading = read(str(file), {})
        if reading.loaded is None:
            return
        loaded.append(reading.loaded.config)
    before, after = loaded
    start(after)[1].close()
    router, spooling = start(before)
    book = LinkRegistry(router)
    for name, vpn in router.vpns.items():
        for number in range(3):
            session = MqttSession(vpn, f"c{number}", Outbox(vpn.context.ready, 0), "default")
            session.durable = True
            session.will = Will(Message(b"w/" * 100 + b"w", b"", b""), 0)
            vpn.clients[session.client_name] = session
            deep = "/".join("abcdefgh") + f"/{name}/#"
            vpn.subscribe(Subscription(parse_filter(deep, MQTT), session, qos=1))
    for one, other in ((before, after), (after, before)):
        for name, written in other.msg_vpns.items():
            known = one.msg_vpns.get(name)
            if known is None:
                router.add(vpn_of(router, name, written, b""))
            else:
                change_message_vpn(router.vpns[name], book, known, written, b"")
        spooling.change(router, other, one)
        for name in one.msg_vpns:
            if name not in other.msg_vpns:
                vpn = router.vpns[name]
                remove_message_vpn(vpn, book)
                spooling.remove(vpn)
        router.tick(router.context.now_ns + 1_000_000_000, router.context.wall_ns + 1_000_000_000)
    spooling.close()


def start(config: Any) -> tuple[Any, SpoolService]:
    """The core of a router with a spool over a store that forgets."""
    router = build_router(config, 7, b"")
    router.tick(1_000_000_000, 1_700_000_000_000_000_000)
    return router, SpoolService(router, MemoryStore(bytes(16)), config)


def test_without_traces(configured: Any) -> None:
    """Without a trace block, or with one switched off, nothing is sampled."""
    vpns = "msg_vpns: {blue: {}}\n"
    for text in (vpns, "trace: {directory: ./t, sample: 1.0, enabled: false}\n" + vpns):
        router = build_router(configured(text), 7, b"s")
        assert not router.context.tracing
        assert router.context.sampler.rate == 0.0


def test_client_certificate_rules_arrive(configured: Any) -> None:
    """Where certificates log clients in, their rules are those that were written; else there are none."""
    text = """
msg_vpns:
  blue:
    authentication:
      client_cert:
        enabled: true
        username_source: subject-alternate-name
        max_chain_depth: 1
        validate_date_enabled: false
  green:
    authentication: {client_cert: {max_chain_depth: 1}}
"""
    vpns = build_router(configured(text), 7, b"s").vpns
    rules = vpns["blue"].credentials.client_cert
    assert rules is not None
    assert rules.username_source == "subject-alternate-name"
    assert (rules.max_chain_depth, rules.validate_date_enabled) == (1, False)
    assert vpns["green"].credentials.client_cert is None


def test_a_router_does_not_tell_where_its_ids_come_from(configured: Any) -> None:
    """Two routers that say the same of themselves, incarnation and all, give other ids."""
    config = configured("msg_vpns: {blue: {}}")
    one, same, other = (build_router(config, 7, secret) for secret in (b"a", b"a", b"b"))
    assert one.context.ids.high == other.context.ids.high
    numbers = [router.context.ids.new_message_id() for router in (one, same, other)]
    assert numbers[0] == numbers[1] != numbers[2]
