"""Promise OWNER: what a client leaves behind belongs to its client username."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from vpnrouter.bridges.link_registry import LinkRegistry
from vpnrouter.core.access import AclProfile, TopicRule
from vpnrouter.core.credentials import ClientUsername, Credentials
from vpnrouter.core.discard_reasons import PUBLISH_TOPIC_ACL, SUBSCRIBE_TOPIC_ACL, TOPIC_PARSE_ERROR
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONSUME,
    MODIFY_TOPIC,
    NO_ACCESS,
    READ_ONLY,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.vpn import VpnLimits
from vpnrouter.events.log import Event, EventLog
from vpnrouter.events.table import SESSION_END
from vpnrouter.server.apply.message_vpn_change import judge_all
from vpnrouter.spool import keys
from vpnrouter.topics.grammar import MQTT
from vpnrouter.wire.mqtt.packets import Connack, Connect, Will
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBREC, PUBREL

if TYPE_CHECKING:
    from tests.core.mqtt.spooled import SpooledClient, SpooledWorld


def knock(router: SpooledWorld, client_id: str, level: int = 5, **connect: object) -> Connack:
    """The answer to a CONNECT that is refused."""
    client = router.open("blue", level)
    client.send(Connect(client_id, protocol_level=level, **connect))  # type: ignore[arg-type]
    (answer,) = client.got()
    assert isinstance(answer, Connack)
    assert answer.reason_code != 0
    assert client.closed
    return answer


def boss(router: SpooledWorld) -> SpooledClient:
    """A client of client username boss whose session lasts and attracts secret/#."""
    client = router.lasting("victim", username="boss")
    assert client.sub("secret/#") == 1
    return client


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("connected", [False, True])
def test_a_session_of_another_username_is_refused(
    router: SpooledWorld, level: int, clean: bool, connected: bool
) -> None:
    """CONNECT with the client id of another client username's session: 0x87, and the session notices nothing."""
    owner = boss(router)
    if not connected:
        owner.lose()
    answer = knock(router, "victim", level, username="low", clean_start=clean)
    # A return code of 3.1.1 is read as the reason code that stands for it.
    assert answer.reason_code == 0x87
    router.join("sender", username="low").pub("secret/1", b"for boss")
    if connected:
        assert not owner.closed
    else:
        owner = router.lasting("victim", username="boss")
        assert owner.connack.session_present
    packets = owner.rest if not connected else owner.messages()
    assert [message.payload for message in packets] == [b"for boss"]  # type: ignore[union-attr]


def test_the_owner_of_a_stored_session_outlives_the_router(router: SpooledWorld) -> None:
    """After a restart a session, with or without an endpoint, still belongs to its owner alone."""
    boss(router).lose()
    router.lasting("light", username="boss").sub("a", 0)
    router.settle()
    again = router.restart()
    assert knock(again, "victim", username="low").reason_code == 0x87
    assert knock(again, "light", username="low").reason_code == 0x87
    assert again.lasting("victim", username="boss").connack.session_present


def test_rows_of_earlier_versions(router: SpooledWorld) -> None:
    """A session stored without an owner is that of who made its endpoint; without one, of who resumes it first."""
    boss(router).lose()
    router.lasting("light", username="boss").sub("a", 0)
    router.settle()
    for client_id, creator in (("victim", "boss"), ("light", "")):
        row = router.session_row(client_id)
        assert row is not None
        del row["owner"]
        batch = router.spool.ledger
        batch.put(keys.session("blue", client_id), json.dumps({**row, "creator": creator}).encode())
    router.settle()
    again = router.restart()
    assert again.vpn().endpoints_of == {"boss": 1}
    assert knock(again, "victim", username="low").reason_code == 0x87
    assert again.lasting("light", username="low").connack.session_present
    again.settle()
    assert knock(again.restart(), "light", username="boss").reason_code == 0x87


def test_an_unknown_password_learns_nothing_of_sessions(router: SpooledWorld) -> None:
    """A client with a wrong password gets the same answer whether a session of its client id exists or not."""
    names = (ClientUsername("boss", "b"), ClientUsername("low", "l"))
    router.add_vpn("blue", usernames=names, basic=True)
    client = router.open()
    client.send(Connect("victim", username="boss", password=b"b"))
    router.verify()
    assert client.received()
    answers = []
    for client_id in ("victim", "nobody"):
        stranger = router.open()
        stranger.send(Connect(client_id, username="low", password=b"wrong"))
        router.verify()
        (answer,) = stranger.received()
        assert isinstance(answer, Connack)
        answers.append((answer.reason_code, answer.properties.reason_string))
    assert answers == [(0x86, "403 Forbidden")] * 2
    low = router.open()
    low.send(Connect("victim", username="low", password=b"l"))
    router.verify()
    (answer,) = low.received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0x87
    assert not client.closed


def test_assigned_client_ids_cannot_be_guessed(router: SpooledWorld) -> None:
    """An assigned client id follows from the router's secret and a number, and shows neither."""
    first, second = [
        router.join("").connack.properties.assigned_client_identifier or "" for _ in range(2)
    ]
    assert first != second
    assert {len(name.removeprefix("auto-")) for name in (first, second)} == {32}
    one, other = (Credentials(False, (), secret) for secret in (b"one", b"other"))
    assert one.assigned_client_id(1) == one.assigned_client_id(1)
    assert (
        len({one.assigned_client_id(1), one.assigned_client_id(2), other.assigned_client_id(1)})
        == 3
    )


@pytest.fixture
def told(router: SpooledWorld) -> list[Event]:
    """Every event from here on."""
    log = EventLog("here", lambda: 1)
    heard: list[Event] = []
    log.listeners.append(heard.append)
    router.router.context.events = log
    return heard


# -- what is taken away and given back while it lasts ---------------------------------------------------


def deny(*filters: str) -> TopicRule:
    """Everything but these."""
    return TopicRule(True, [(text, MQTT) for text in filters])


def rights(
    router: SpooledWorld,
    subscribe: TopicRule | None = None,
    publish: TopicRule | None = None,
    share: TopicRule | None = None,
    **profile: int,
) -> None:
    """Another ACL profile and client profile for everybody in blue, as a reload brings them."""
    vpn = router.vpn()
    vpn.acl_profiles = {
        "default": AclProfile("default", subscribe=subscribe, publish=publish, share_name=share)
    }
    vpn.profiles = {"default": ClientProfile("default", **profile)}
    judge_all(vpn, LinkRegistry(router.router))


def test_many_clients_are_judged_in_slices(router: SpooledWorld) -> None:
    """Another client's packet does not wait for all of them; at the end each has its new rights."""
    readers = [router.join(f"c{number}") for number in range(300)]
    for reader in readers:
        reader.sub("#", 0)
        reader.got()
    rights(router, deny("secret/#"))
    jobs = router.router.context.jobs
    assert len(jobs) == 1
    readers[7].connection.lost("gone meanwhile")
    slices = 0
    while len(jobs):
        jobs.step()
        slices += 1
    assert slices >= 3
    sender = router.join("sender")
    sender.pub("secret/x", b"no")
    sender.pub("open/x", b"yes")
    for number, reader in enumerate(readers):
        if number != 7:
            assert [one.payload for one in reader.messages()] == [b"yes"]


@pytest.mark.parametrize("qos", [0, 1])
def test_a_denied_topic_is_left_out_of_a_wide_filter(router: SpooledWorld, qos: int) -> None:
    """`#` is granted, and what the ACL denies is left out: live, retained, shared, of a durable session."""
    sender = router.join("sender")
    sender.pub("open/old", b"retained", retain=True)
    sender.pub("secret/old", b"retained secret", retain=True)
    sender.got()
    rights(router, deny("secret/#"))
    client = router.lasting("c")
    assert client.sub("#", qos) == qos
    (retained,) = client.resolved(client.rest)
    assert (retained.payload, retained.qos) == (b"retained", qos)
    if qos:
        client.puback(retained)
    member = router.join("member")
    assert member.sub("$share/g/#", qos) == qos
    for number in range(4):
        sender.pub("secret/x", b"secret", qos=number % 2)
        sender.pub("open/x", b"%d" % number, qos=number % 2)
    # Direct and guaranteed ones overtake each other.
    assert sorted(client.take()) == sorted(member.take()) == [b"0", b"1", b"2", b"3"]
    client.lose()
    for topic in ("secret/x", "open/x"):
        sender.pub(topic, topic.encode())
    sender.got()
    client = router.lasting("c")
    took = [message.payload for message in client.rest] + client.take()  # type: ignore[union-attr]
    assert took == ([b"open/x"] if qos else [])


def test_names_of_the_client_decide_what_is_left_out(router: SpooledWorld) -> None:
    """`$client-id` in a denial leaves the topic out for that client and for no other."""
    rights(router, deny("of/$client-id/+"))
    first, second = router.join("one"), router.join("two")
    for client in (first, second):
        assert client.sub("of/#") == 1
    sender = router.join("sender")
    for name in ("one", "two"):
        sender.pub(f"of/{name}/x", name.encode())
    assert (first.take(), second.take()) == ([b"two"], [b"one"])


def test_an_acl_takes_away_at_once_and_gives_back(router: SpooledWorld, told: list[Event]) -> None:
    """Publishing and standing subscriptions follow a changed ACL profile; both have it back when it changes back."""
    client, sender = router.join("c"), router.join("sender")
    assert client.sub("secret/x", 0) == 0
    assert client.sub("$share/g/s", 0) == 0
    told.clear()
    for taken in (True, False, True):
        rule = deny("secret/#") if taken else None
        rights(router, rule, deny("p/#") if taken else None, deny("g") if taken else None)
        sender.publish("secret/x", b"secret")
        sender.publish("s", b"shared")
        assert client.take() == ([] if taken else [b"secret", b"shared"])
        sender.pub("p/x")
        assert sender.acks() == [(PUBACK, 1, 0x87 if taken else 0)]
    mine = [event.text for event in told if event.name == "c"]
    assert len(mine) == 3
    assert "subscribe_topic, publish_topic, shared subscriptions" in mine[0]


def test_what_a_session_may_not_have_any_more_does_not_come_at_resume(router: SpooledWorld) -> None:
    """A stored session, after a restart too, brings nothing that its owner's ACL profile denies by now."""
    client = router.lasting("c", username="u")
    assert client.sub("a/#") == 1
    client.lose()
    sender = router.join("sender")
    for topic in ("a/secret", "a/open"):
        sender.pub(topic, topic.encode())
    sender.got()
    rights(router, deny("a/secret"))
    for topic in ("a/secret", "a/open"):
        sender.pub(topic, b"later " + topic.encode())
    sender.got()
    again = router.restart()
    rights(again, deny("a/secret"))
    client = again.lasting("c", username="u")
    assert client.connack.session_present
    first = [message.payload for message in client.rest]  # type: ignore[union-attr]
    client.puback(*client.rest)  # type: ignore[arg-type]
    assert first + client.take() == [b"a/open", b"later a/open"]
    assert again.vpn().discards.counts[SUBSCRIBE_TOPIC_ACL] == 1
    session = again.vpn().clients["c"]
    assert session.endpoint is not None
    again.settle()
    assert session.endpoint.spooled_count == 0


def test_guaranteed_messages_are_taken_away_and_come_back(router: SpooledWorld) -> None:
    """Without the right to receive, a session gets matches as Direct and keeps none, at resume too; then as before."""
    client, sender = router.lasting("c", username="u"), router.join("sender")
    assert client.sub("a") == 1
    sender.pub("a", b"waits")
    (waits,) = client.messages()
    rights(router, allow_guaranteed_msg_receive_enabled=False)
    sender.pub("a", b"direct")
    (message,) = client.messages()
    assert (message.payload, message.qos) == (b"direct", 0)
    client.lose()
    sender.pub("a", b"missed")
    sender.got()
    again = router.restart()
    rights(again, allow_guaranteed_msg_receive_enabled=False)
    client = again.lasting("c", username="u")
    assert client.rest == []
    rights(again)
    (message,) = client.messages()
    assert (message.payload, message.qos, message.packet_id) == (b"waits", 1, waits.packet_id)
    client.puback(message)
    again.join("sender").pub("a", b"again")
    (message,) = client.messages()
    assert (message.payload, message.qos) == (b"again", 1)


def test_a_consumer_loses_its_queue_with_its_right(router: SpooledWorld) -> None:
    """Consumers and browsers of a queue are let go when receiving is forbidden; the messages are the queue's again."""
    endpoint = router.queue("q", "a", permission=CONSUME)
    client, browser, sender = router.join("c"), router.join("b"), router.join("sender")
    assert client.sub("$queue/q") == 1
    assert browser.sub("$browse/q") == 1
    sender.pub("a", b"1")
    assert [message.payload for message in client.messages()] == [b"1"]
    rights(router, allow_guaranteed_msg_receive_enabled=False)
    assert endpoint.flows == []
    browser.got()
    sender.pub("a", b"2")
    router.settle()
    router.advance(1)
    assert client.messages() == browser.messages() == []
    assert endpoint.spooled_count == 2
    assert client.refused("$queue/q") == (0x87, "403 Permission Denied")


def test_a_queue_that_takes_its_permission_back(router: SpooledWorld) -> None:
    """A consumer is let go when the queue's permission or owner is not enough for it any more; its owner stays."""
    endpoint = router.queue("q", "a", permission=CONSUME, owner="boss", exclusive=False)
    low, chief = router.join("low", username="low"), router.join("chief", username="boss")
    for client in (low, chief):
        assert client.sub("$queue/q") == 1
    settings = endpoint.settings.copy()
    settings.permission = READ_ONLY
    endpoint.take_settings(settings)
    assert [flow.client_name for flow in endpoint.flows] == ["chief"]
    settings = endpoint.settings.copy()
    settings.owner = "low"
    endpoint.take_settings(settings)
    assert endpoint.flows == []


def test_sending_guaranteed_messages_is_taken_away(router: SpooledWorld) -> None:
    """PUBLISH with QoS 1 is answered 0x87 from then on, and taken again when the right is back."""
    client = router.join("c")
    reader = router.join("r")
    reader.sub("a", 0)
    for allowed in (True, False, True):
        rights(router, allow_guaranteed_msg_send_enabled=allowed)
        client.pub("a", b"x")
        assert client.acks() == [(PUBACK, 1, 0 if allowed else 0x87)]
        assert reader.take() == ([b"x"] if allowed else [])


@pytest.mark.parametrize("restart", [False, True])
def test_a_session_ends_with_its_client_username(
    router: SpooledWorld, told: list[Event], restart: bool
) -> None:
    """When a client username is removed, what it left behind goes, and the client id is free for others."""
    names = (ClientUsername("boss", "b"), ClientUsername("low", "l"))
    vpn = router.vpn()
    for username in names:
        client = router.lasting(username.name, username=username.name)
        assert client.sub("secret/#") == 1
        client.lose()
    router.join("sender").pub("secret/1", b"for both")
    router.settle()
    told.clear()
    if restart:
        later = router.restart(usernames=names[1:], basic=True)
    else:
        vpn.credentials = Credentials(True, names[1:])
        judge_all(vpn, LinkRegistry(router.router))
        later = router
        assert [event.text for event in told if event.kind is SESSION_END] == [
            "VPN blue client boss username boss: session ended: client username boss is gone; 1 messages discarded"
        ]
    later.settle()
    assert set(later.vpn().clients) & {"boss", "low"} == {"low"}
    assert set(later.vpn().endpoints_of) == {"low"}
    assert later.session_row("boss") is None
    later.vpn().credentials = Credentials(False, names[1:])
    heir = later.lasting("boss", username="low")
    assert not heir.connack.session_present
    assert heir.rest == []


def test_a_disabled_client_username_keeps_its_session(router: SpooledWorld) -> None:
    """The client is put out with 0x98 and the session goes on keeping messages until the name is enabled again."""
    vpn = router.vpn()
    client = router.lasting("c", username="u")
    assert client.sub("a") == 1
    vpn.credentials = Credentials(False, [ClientUsername("u", enabled=False)])
    judge_all(vpn, LinkRegistry(router.router))
    assert client.reason() == 0x98
    router.join("sender").pub("a", b"kept")
    assert knock(router, "c", username="u").reason_code == 0x87
    vpn.credentials = Credentials(False, [ClientUsername("u")])
    judge_all(vpn, LinkRegistry(router.router))
    client = router.lasting("c", username="u")
    assert [message.payload for message in client.rest] == [b"kept"]  # type: ignore[union-attr]


def test_a_login_that_waited_comes_in_by_what_holds_then(router: SpooledWorld) -> None:
    """A client whose ACL profile or password changes while its password is verified logs in under the new ones."""
    router.add_vpn(
        "blue", usernames=(ClientUsername("u", "p"), ClientUsername("v", "p")), basic=True
    )
    vpn = router.vpn()
    client = router.open()
    client.send(Connect("c", username="u", password=b"p"))
    vpn.acl_profiles = {"default": AclProfile("default", subscribe=deny("secret/#"))}
    judge_all(vpn, LinkRegistry(router.router))
    router.verify()
    client.received()
    assert client.refused("secret/x") == (0x87, "403 Subscription ACL Denied")
    late = router.open()
    late.send(Connect("late", username="v", password=b"p"))
    vpn.credentials = Credentials(True, [ClientUsername("v", "other")])
    router.verify()
    (answer,) = late.received()
    assert isinstance(answer, Connack)
    assert answer.reason_code == 0x86


def test_a_topic_endpoint_attracts_what_its_subscriber_may_have(router: SpooledWorld) -> None:
    """The subscription that a client gave a topic endpoint follows its ACL profile, also when nobody is bound."""
    endpoint = router.queue("te", kind=TOPIC_ENDPOINT, permission=MODIFY_TOPIC)
    rights(router, deny("a/1"))
    client, sender = router.join("c", username="u"), router.join("sender")
    assert client.sub("$topic-endpoint/te/a/#") == 1
    for expected, rule in (([b"a/2"], deny("a/1")), ([b"a/1"], deny("a/2"))):
        rights(router, rule)
        for topic in ("a/1", "a/2"):
            sender.pub(topic, topic.encode())
        sender.got()
        assert client.take() == expected
    client.lose()
    vpn = router.vpn()
    vpn.credentials = Credentials(True, ())
    judge_all(vpn, LinkRegistry(router.router))
    vpn.credentials = Credentials(False, ())
    router.join("other").pub("a/1")
    router.settle()
    assert endpoint.spooled_count == 0


# -- point to point ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("permission", [NO_ACCESS, READ_ONLY, CONSUME])
def test_strangers_cannot_fill_a_queue(router: SpooledWorld, qos: int, permission: int) -> None:
    """$queue/NAME is for its owner and for who may consume; for others where an exception names it."""
    vpn = router.vpn()
    vpn.acl_profiles["named"] = AclProfile("named", publish=TopicRule(False, [("$queue/q", MQTT)]))
    vpn.acl_profiles["wild"] = AclProfile("wild", publish=TopicRule(False, [("#", MQTT)]))
    vpn.credentials = Credentials(
        False,
        (
            ClientUsername("named", acl_profile="named"),
            ClientUsername("wild", acl_profile="wild"),
            ClientUsername("over", guaranteed_endpoint_permission_override_enabled=True),
        ),
    )
    endpoint = router.queue("q", owner="boss", permission=permission)
    took = []
    for name in ("boss", "over", "named", "stranger", "wild"):
        client = router.join(name, username=name)
        for _ in range(2):
            # The second one comes by a route that is known.
            client.pub("$queue/q", name.encode(), qos=qos, pid=7 if qos else 0)
            answers = client.acks()
            if answers and answers[0] == (PUBREC, 7, 0):
                client.ack(PUBREL, 7)
                client.got()
        assert not client.closed
        took.append(endpoint.counters.spooled)
    open_to_all = 2 if permission == CONSUME else 0
    # `#` takes in no topic that begins with `$`.
    assert took == [2, 4, 6, 6 + open_to_all, 6 + open_to_all]


def test_a_will_for_a_queue_of_another(router: SpooledWorld) -> None:
    """A will on $queue/NAME is discarded where its client may not put anything there."""
    endpoint = router.queue("q", owner="boss", permission=NO_ACCESS)
    for name in ("boss", "stranger"):
        client = router.join(name, username=name, will=Will(b"$queue/q", name.encode(), qos=1))
        client.lose()
        router.settle()
    assert [row.message.payload for row in endpoint.browse(0, 9)] == [b"boss"]


# -- bounds that are lowered --------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [{"max_topic_levels": 3}, {"max_topic_bytes": 12}])
def test_lowered_bounds_of_topics_raise_nothing_later(
    router: SpooledWorld, bounds: dict[str, int]
) -> None:
    """Wills that do not fit any more are counted; what is cached, retained, stored or subscribed goes on or away."""
    deep = "one/two/three/four/five"
    sender, reader = router.join("sender"), router.join("reader")
    assert reader.sub("#", 0) == 0
    left = router.lasting("left")
    assert left.sub(deep) == 1
    assert left.sub("one/two/three/four/+", 0) == 0
    left.lose()
    sender.pub(deep, b"retained", retain=True)
    sender.got()
    wills = [
        router.join("at once", will=Will(deep.encode(), b"1")),
        router.join("guaranteed", will=Will(deep.encode(), b"2", qos=1)),
        router.lasting(
            "later", will=Will(deep.encode(), b"3", properties=Properties(will_delay_interval=5))
        ),
        router.lasting("taken", will=Will(deep.encode(), b"4")),
    ]
    reader.take()
    vpn = router.vpn()
    vpn.take_bounds(VpnLimits(**bounds))
    for client in wills[:3]:
        client.lose()
    router.lasting("taken")
    router.advance(6)
    router.settle()
    assert reader.take() == []
    assert vpn.discards.counts[TOPIC_PARSE_ERROR] == 4
    again = router.restart(bounds=VpnLimits(**bounds))
    back = again.lasting("left")
    assert [message.payload for message in back.resolved(back.rest)] == [b"retained"]
    late = again.join("late")
    assert late.sub("#", 0) == 0
    assert [message.payload for message in late.resolved(late.rest)] == [b"retained"]
    publisher = again.join("p")
    publisher.pub(deep)
    assert publisher.reason() == 0x90


@pytest.mark.parametrize("qos", [1, 2])
def test_a_client_profile_may_give_no_ingress_flow(router: SpooledWorld, qos: int) -> None:
    """With `max_ingress_flow_count: 0` each guaranteed message is refused with 0x97; Direct ones pass."""
    rights(router, max_ingress_flow_count=0)
    client, reader = router.join("c"), router.join("r")
    assert reader.sub("a", 0) == 0
    for number in (1, 2):
        client.pub("a", b"no", qos=qos, pid=number)
        assert client.acks() == [(PUBACK if qos == 1 else PUBREC, number, 0x97)]
    client.publish("a", b"direct")
    assert reader.take() == [b"direct"]
    assert router.vpn().ingress_flows == 0
    rights(router, max_ingress_flow_count=1)
    client.pub("a", b"yes", qos=qos)
    assert client.acks() == [(PUBACK if qos == 1 else PUBREC, 1, 0)]
    assert router.vpn().ingress_flows == 1


def test_a_will_of_who_is_put_out_is_judged_by_what_holds_then(router: SpooledWorld) -> None:
    """A change that puts a client out and denies its will at once does not let the will through."""
    reader = router.join("r", username="r")
    assert reader.sub("#", 0) == 0
    client = router.join("c", username="u", will=Will(b"gone/c", b"gone"))
    vpn = router.vpn()
    vpn.acl_profiles = {"default": AclProfile("default", publish=deny("gone/#"))}
    vpn.credentials = Credentials(False, [ClientUsername("u", enabled=False)])
    judge_all(vpn, LinkRegistry(router.router))
    assert client.reason() == 0x98
    assert reader.take() == []
    assert vpn.discards.counts[PUBLISH_TOPIC_ACL] == 1
