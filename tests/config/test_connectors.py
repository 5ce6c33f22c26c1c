"""Checks of connectors: each mistake is one problem that says what is wrong, and where."""

import time
from collections.abc import Callable

import pytest

from vpnrouter import limits
from vpnrouter.config.configured_connector import place_of
from vpnrouter.config.connector import Connector

LINES = """msg_vpns:
  blue:
    queues: {{q: {{}}}}
    connectors:
      c:
        provider: {provider}
        links:
          l: {link}
"""

GOOD = '{url: "mqtt://h"}'
MANY = ", ".join(f"H{number}: x" for number in range(65))
JMS = '{url: "amqp://h"}'
HOOK = '{url: "http://h"}'
IDLE = '{url: "mqtt://h", connect: {idle_timeout: 5}}'
LINK = '{source: {address: "a/#"}}'
STEP = "{{source: {{address: a/+}}, transform: [{}]}}"
ONCE = """{source: {topic: a}, quality_of_service: at-most-once, on_transform_error: stop,
            transform: [{priority: 3}]}"""
SLOW = "{source: {queue: q}, target: {address: a}, request: {retry: {initial_interval: 99, max_interval: 98}}}"
AWAY = "source: {queue: q}, target: {address: a}"


def text(provider: str = GOOD, link: str = LINK) -> str:
    """A configuration with one connector."""
    return LINES.format(provider=provider, link=link)


@pytest.mark.parametrize(
    ("provider", "link", "told"),
    [
        ("{}", LINK, "has no provider.url"),
        ('{url: "ftp://h"}', LINK, "does not begin with one of mqtt://, mqtts://, amqp://"),
        (JMS, "{source: {address: 'queue://'}}", "source.address: has no name"),
        (JMS, "{source: {address: 'queue://q', subscription: s}}", "is for the address of a topic"),
        (JMS, "{source: {address: 'topic://t', shared: true}}", "needs a subscription beside it"),
        (JMS, "{source: {address: 'topic://t', subscription: 'a|b'}}", "must not contain |"),
        (JMS, "{source: {address: q, selector: x =}}", "source.selector"),
        (JMS, "{source: {queue: q, subscription: s}}", "are for an address"),
        (JMS, "{source: {queue: q}, target: {address: 'topic://'}}", "target.address: has no name"),
        (JMS, "{source: {queue: q}, target: {address: 'queue://{2}'}}", "wildcard"),
        (
            '{url: "amqp://h", broker: rabbitmq}',
            "{source: {queue: q}, target: {address: a}, quality_of_service: once-and-only-once}",
            "rabbitmq offers nothing by which it would know a message again",
        ),
        (GOOD, "{source: {queue: q}, transacted: true}", "transacted: is for a provider of AMQP"),
        (GOOD, "{source: {queue: q}, batch: {max_size: 5}}", "max_size: is for a provider of AMQP"),
        (HOOK, "{source: {queue: q}, transacted: true}", "transacted: is for a provider of AMQP"),
        (JMS, "{source: {address: a}, transacted: true}", "is accepted when it is in the synced"),
        (JMS, "{source: {address: a}, batch: {max_size: 5}}", "for a link that takes messages out"),
        (
            JMS,
            f"{{{AWAY}, transacted: true, quality_of_service: at-most-once}}",
            "that the provider answers",
        ),
        (JMS, f"{{{AWAY}, batch: {{max_time: 5}}}}", "is for a link with transacted: true"),
        (JMS, f"{{{AWAY}, batch: {{max_size: 10001}}}}", "batch.max_size"),
        (JMS, f"{{{AWAY}, batch: {{max_time: -2}}}}", "batch.max_time"),
        (
            '{url: "amqp://h", broker: rabbitmq}',
            f"{{{AWAY}, transacted: true}}",
            "rabbitmq has no trans",
        ),
        ('{url: "amqp://h", broker: activemq}', LINK, "provider.broker"),
        (
            '{url: "amqp://h", broker: rabbitmq}',
            "{source: {address: 'topic://t'}}",
            "source.address: rabbitmq gives out no messages of a topic: name a queue of it",
        ),
        (
            '{url: "amqp://h", broker: rabbitmq}',
            "{source: {address: 'queue://q', selector: x > 1}}",
            "source.selector: rabbitmq knows no selectors",
        ),
        (
            '{url: "amqp://h", broker: ibm-mq}',
            "{source: {queue: q}, target: {address: 'queue://{1}'}}",
            "target.address: ibm-mq takes no messages for an address of their own",
        ),
        ('{url: "amqp://h:0"}', LINK, "names port 0"),
        ('{url: "amqp://h", virtual_host: "a\\tb"}', LINK, "must not contain control characters"),
        ('{url: "amqp://h", window: 0}', LINK, "provider.window"),
        ('{url: "amqp://h", failover_urls: ["mqtt://h"]}', LINK, "speak another protocol"),
        ('{url: "amqp://h", client_cert: {}}', LINK, "needs TLS to every address: amqps://"),
        (GOOD, "{source: {address: a, subscription: s}}", "a provider of MQTT has none"),
        (GOOD, "{source: {address: a, shared: true}}", "the address says so: $share/GROUP/FILTER"),
        (
            '{url: "https://h", token: "a\\r\\nb"}',
            f"{{{AWAY}}}",
            "token: cannot be sent: the token has",
        ),
        ('{url: "https://h", username: "a:b"}', f"{{{AWAY}}}", "username: cannot be sent: the"),
        (GOOD, STEP.format("{topic: 'a/+'}"), "transform[0].topic: no topic has + or # in it"),
        (GOOD, STEP.format("{topic: '{level:3}'}"), "names level 3, but the topics of the source"),
        (GOOD, STEP.format("{topic: '{x}'}"), "transform[0]: topic: has {x}, which is none of"),
        (GOOD, STEP.format("{priority: 3}, {}"), "transform[1]: a step has exactly one of"),
        (GOOD, STEP.format("{when: 'a =', priority: 3}"), "transform[0]: when: "),
        (
            GOOD,
            STEP.format("{edit_payload: {set: {a: b}}}"),
            "a is no JSON pointer: it begins with /",
        ),
        (
            GOOD,
            ONCE,
            "on_transform_error: stop is for messages that wait",
        ),
        (
            '{url: "mqtt://h", proxy: {url: "http://p:1", username: "a:b"}}',
            LINK,
            "username: has a colon",
        ),
        (HOOK, SLOW, "initial_interval: is more than max_interval"),
        (IDLE, LINK, "connect.idle_timeout: link l needs the connection"),
        (IDLE, "{source: {topic: t}, quality_of_service: at-most-once}", "link l needs the"),
        (HOOK, LINK, "nothing comes in from an HTTP server"),
        (HOOK, "{source: {queue: q}, quality_of_service: once-and-only-once}", "is the most"),
        (HOOK, "{source: {queue: q}, target: {address: '/a b'}}", "percent-encode it"),
        (HOOK, "{source: {queue: q}, target: {address: '/{2}'}}", "names wildcard {2}"),
        (HOOK, "{source: {queue: q}, target: {address: '/../a'}}", "has a segment . or .."),
        (HOOK, "{source: {queue: q}, request: {headers: {Host: h}}}", "is not for links to set"),
        (HOOK, "{source: {queue: q}, request: {headers: {'a b': h}}}", "a header's name is"),
        (HOOK, '{source: {queue: q}, request: {headers: {A: "a\\r\\nb"}}}', "cannot carry"),
        (HOOK, "{source: {queue: q}, request: {headers: {A: '{body}'}}}", "which is none of"),
        (HOOK, "{source: {queue: q}, request: {headers: {A: x, a: y}}}", "has a several times"),
        (HOOK, "{source: {queue: q}, request: {method: GET}}", "request.method"),
        (HOOK, f"{{source: {{queue: q}}, request: {{headers: {{{MANY}}}}}}}", "at most 64"),
        (f'{{url: "http://h", token: "{"x" * 8_193}"}}', LINK, "provider.token"),
        (GOOD, "{source: {queue: q}, request: {method: PUT}}", "is for an HTTP server"),
        ('{url: "http://h/a?b"}', LINK, "is not of the form http://HOST[:PORT][/BASE]"),
        ('{url: "http://h/a b"}', LINK, "percent-encode it"),
        ('{url: "http://h/a/../b"}', LINK, "percent-encode it"),
        ('{url: "http://h", failover_urls: ["mqtt://h"]}', LINK, "speak another protocol"),
        ('{url: "http://h/a", failover_urls: ["http://i"]}', LINK, "have another path"),
        ('{url: "http://h", token: x, username: u}', LINK, "give one of them"),
        ('{url: "mqtt://h", token: x}', LINK, "is for an HTTP server"),
        ('{url: "http://h", token: x}', LINK, "everybody on the way can read it: use https://"),
        ('{url: "http://h", max_connections: 0}', LINK, "max_connections"),
        ('{url: "http://h", max_connections: 257}', LINK, "max_connections"),
        ('{url: "mqtt://u:p@h"}', LINK, "a URL has no login in it"),
        ('{url: "mqtt://h", password: x}', LINK, "needs a username beside it"),
        (
            '{url: "mqtt://h", client_cert: {}}',
            LINK,
            "needs TLS to every address: mqtts://",
        ),
        ('{url: "mqtts://h", client_cert: {}}', LINK, "has no certificate"),
        ('{url: "mqtt://h", name: a b}', LINK, "a provider name may only contain"),
        (
            '{url: "mqtt://h", tls: {alpn: [mqtt]}}',
            LINK,
            "is for an address with TLS: mqtts://",
        ),
        (
            '{url: "mqtt://h", tls: {server_name: h}}',
            LINK,
            "is for an address with TLS: mqtts://",
        ),
        ('{url: "mqtts://h", tls: {server_name: "a..b"}}', LINK, "a server name may only contain"),
        ('{url: "mqtts://h", tls: {server_name: "ä"}}', LINK, "a server name may only contain"),
        ('{url: "mqtts://h", tls: {alpn: ["a b"]}}', LINK, "a protocol name may only contain"),
        ('{url: "mqtts://h", tls: {alpn: [""]}}', LINK, "a protocol name must not be empty"),
        ('{url: "mqtt://h", proxy: {url: "https://p:1"}}', LINK, "is not of the form http://HOST"),
        ('{url: "mqtt://h", proxy: {url: "http://p"}}', LINK, "is not of the form http://HOST"),
        ('{url: "mqtt://h", proxy: {url: "http://u@p:1"}}', LINK, "a URL has no login in it"),
        ('{url: "mqtt://h", proxy: {username: u}}', LINK, "has no url"),
        (
            '{url: "mqtt://h", proxy: {url: "http://p:1", password: x}}',
            LINK,
            "needs a username beside it",
        ),
        ('{url: "mqtt://h", interface: "a b"}', LINK, "an interface may only contain"),
        (GOOD, "{}", "source has exactly one of address, queue and topic"),
        (GOOD, "{source: {address: a, topic: b}}", "source has exactly one of"),
        (GOOD, "{source: {address: a/#/b}}", "TOPIC-20"),
        (GOOD, "{source: {topic: a//b}}", "TOPIC-15"),
        (GOOD, "{source: {topic: '#share/g/a'}}", "a connector has no share"),
        (GOOD, "{source: {queue: none}}", "there is no queue none"),
        (GOOD, "{source: {address: a}, target: {queue: none}}", "there is no queue none"),
        (GOOD, "{source: {address: a}, target: {address: b}}", "target.address is for a source"),
        (GOOD, "{source: {queue: q}, target: {queue: q}}", "is an address at the provider"),
        (GOOD, "{source: {address: a}, target: {queue: q, topic: b}}", "topic or queue, not both"),
        (GOOD, "{source: {address: a/+}, target: {topic: 'b/{2}'}}", "names {2} at character 3"),
        (GOOD, "{source: {queue: q}, target: {address: 'b/{2}'}}", "names {2} at character 3"),
        (GOOD, "{source: {address: a, selector: x = 1}}", "a provider of MQTT has none"),
        (GOOD, "{source: {queue: q, selector: x =}}", "selector"),
    ],
)
def test_mistakes(
    problems_of: Callable[[str], list[str]], provider: str, link: str, told: str
) -> None:
    """Each has one problem."""
    found = problems_of(text(provider, link))
    assert any(told in one for one in found), found


@pytest.mark.parametrize(
    ("provider", "told"),
    [
        ('{url: "ftp://h"}', "provider.url: ftp://h does not begin with"),
        ("{url: [a]}", "provider.url: must be text"),
        ("{url: 5}", "provider.url: must be text"),
        ('{url: "mqtts://h", username: 5, password: x}', "provider.username: must be text"),
        ('{url: "mqtts://h", username: "a\\x07", password: x}', "provider.username: a client"),
    ],
)
def test_one_mistake_is_one_problem(
    problems_of: Callable[[str], list[str]], provider: str, told: str
) -> None:
    """What is wrong is not said to be missing as well."""
    (found,) = [one for one in problems_of(text(provider)) if "connectors" in one]
    assert told in found


DEAD = "{{source: {source}, dead_msg_queues: [{entry}]}}"

WRONG_LISTS = {
    "no place": ("{queue: q}", "{}", "exactly one of queue, topic and address"),
    "two places": ("{queue: q}", "{queue: d, topic: t}", "exactly one of queue, topic and address"),
    "its own queue": ("{queue: q}", "{queue: q}", "queue: is the queue that the link takes from"),
    "a filter": ("{queue: q}", "{topic: 'a/#'}", "topic: a topic published by MQTT has no + or #"),
    "its own topics": ("{topic: 'a/>'}", "{topic: a/b}", "topic: is what the link takes"),
    "its own address": ("{address: 'a/#'}", "{address: a/b}", "address: is what the link takes"),
    "an address that is none": ("{queue: q}", "{address: 'a/{2}'}", "to names {2}"),
    "a negative interval": (
        "{queue: q}",
        "{topic: t, interval: -1}",
        "interval: must be from 10 to 3600000",
    ),
    "no attempt": ("{queue: q}", "{topic: t, attempts: 0}", "attempts: must be from 1 to 1000"),
    "a negative life time": ("{queue: q}", "{topic: t, ttl: -1}", "ttl: must be from 0 to"),
    "something else": ("{queue: q}", "{topic: t, retries: 1}", "retries"),
}
"""The source of a link and an entry of its list of dead message queues, and what is told of that."""


@pytest.mark.parametrize("name", WRONG_LISTS)
def test_wrong_lists_of_dead_message_queues(
    problems_of: Callable[[str], list[str]], name: str
) -> None:
    """Each is told once, at its place in the list."""
    source, entry, told = WRONG_LISTS[name]
    found = problems_of(text(link=DEAD.format(source=source, entry=entry)))
    (problem,) = [one for one in found if "dead_msg_queues" in one]
    assert "connectors.c.links.l.dead_msg_queues[0]" in problem
    assert told in problem


def test_lists_of_bridges(problems_of: Callable[[str], list[str]]) -> None:
    """A bridge has queues and topics here; an address, a filter and a wrong number are told at their place."""
    bridge = "{{remote_subscriptions: [a], dead_msg_queues: [{entry}]}}"
    for entry, told in (
        ("{address: far}", "[0].address: is at a provider, which a connector has"),
        ("{topic: 'a/#'}", "[0].topic: a topic published by MQTT has no + or #"),
        ("{topic: t, ttl: -1}", "[0].ttl: must be from 0 to"),
        ("{queue: d}", "[0].queue: there is no queue d: the next entry has its turn"),
    ):
        lines = f"msg_vpns:\n  blue:\n    bridges:\n      b: {bridge.format(entry=entry)}\n"
        (problem,) = [one for one in problems_of(lines) if "dead_msg_queues" in one]
        assert f"bridges.b.dead_msg_queues{told}" in problem


@pytest.mark.parametrize("beyond", [0, 1])
def test_limit_of_entries(problems_of: Callable[[str], list[str]], beyond: int) -> None:
    """A list has so many entries, and not one more."""
    entries = ", ".join(["{topic: t}"] * (limits.DEAD_MSG_QUEUES + beyond))
    link = DEAD.format(source="{queue: q}", entry=entries)
    assert len([one for one in problems_of(text(link=link)) if "dead_msg_queues" in one]) == beyond


def test_an_address_of_amqp(problems_of: Callable[[str], list[str]]) -> None:
    """It has a name, and is another one than that of the source."""
    for entry, told in (("'queue://'", "has no name"), ("'queue://q'", "is what the link takes")):
        link = DEAD.format(source="{address: 'queue://q'}", entry=f"{{address: {entry}}}")
        (problem,) = [one for one in problems_of(text(JMS, link)) if "dead_msg_queues" in one]
        assert told in problem


def test_connections_of_their_own(problems_of: Callable[[str], list[str]]) -> None:
    """Two of them cannot bring one message in twice, back by MQTT 3.1.1, or have another connector's client id."""
    twice = (
        '{source: {address: "a/#"}}\n          m: {source: {address: "a/b"}, connection: dedicated}'
    )
    assert any("a message on a/b comes from" in one for one in problems_of(text(link=twice)))
    back = (
        '{source: {address: "a/#"}}\n          m: {source: {topic: "a/b"}, connection: dedicated}'
    )
    old = text('{url: "mqtt://h", mqtt_version: "3.1.1"}', back)
    assert any("use one connection, or mqtt_version: 5" in one for one in problems_of(old))
    for out in (
        "{source: {queue: q}, connection: dedicated}",
        "{source: {topic: b/*}, target: {address: 'a/{1}'}, connection: dedicated}",
    ):
        back = f'{{source: {{address: "a/#"}}}}\n          m: {out}'
        old = text('{url: "mqtt://h", mqtt_version: "3.1.1"}', back)
        assert any(
            "brings back what link m of connector c takes out" in one for one in problems_of(old)
        )
        # A wrong subscription of the queue is told where the queue is.
        bad = old.replace(
            "queues: {q: {}}", "queues: {q: {topic_syntax: mqtt, subscriptions: [a/#/b]}}"
        )
        assert any("subscriptions" in one for one in problems_of(bad))
        other = old.replace("queues: {q: {}}", "queues: {q: {subscriptions: [c/>, '!a/>']}}")
        assert any("m of connector c takes out" in one for one in problems_of(other)) is (
            "topic" in out
        )
        for fine in (text('{url: "mqtt://h"}', back), old.replace("dedicated", "shared")):
            assert not any("m of connector c takes out" in one for one in problems_of(fine))
    named = text('{url: "mqtt://h", client_id: x}', "{source: {address: a}, connection: dedicated}")
    other = '      d: {provider: {url: "mqtt://h", client_id: x-l}, links: {k: {source: {address: b}}}}\n'
    place = named.index("      c:")
    both = named[:place] + other + named[place:]
    assert any("has the client_id of connector d, x-l" in one for one in problems_of(both))


def test_doubtful_lists_of_dead_message_queues(warnings_of: Callable[[str], list[str]]) -> None:
    """A queue that is not there, and a list that takes nothing, are warned of."""
    entries = "dead_msg_queues: [{queue: d}]"
    found = {
        f"{{source: {{queue: q}}, {entries}}}": "there is no queue d: the next entry has its turn",
        "{source: {queue: q}, then: skip, dead_msg_queues: [{topic: t}]}": "then is skip",
        f"{{source: {{topic: a}}, quality_of_service: at-most-once, {entries}}}": "takes nothing",
    }
    found["{source: {address: a}, expired: dead-letter}"] = "discards what has expired"
    for link, told in found.items():
        assert any(told in one and "dead_msg_queues" in one for one in warnings_of(text(link=link)))


@pytest.mark.parametrize(
    "link",
    [
        LINK,
        "{source: {address: $share/g/a/+}, target: {topic: 'b/{1}'}}",
        "{source: {queue: q}, target: {address: 'b/{1}'}, quality_of_service: once-and-only-once}",
        "{source: {topic: a/*/>, selector: x > 1}, target: {address: '{2}/{1}'}}",
        "{source: {queue: q}, dead_msg_queues: [{topic: t}, {address: 'dead/{1}', ttl: 60}]}",
        "{source: {address: a/+}, dead_msg_queues: [{queue: q}, {address: dead}]}",
    ],
)
def test_what_is_good(problems_of: Callable[[str], list[str]], link: str) -> None:
    """Nothing is told."""
    assert not [one for one in problems_of(text(link=link)) if "connectors" in one]


def test_doubtful(warnings_of: Callable[[str], list[str]]) -> None:
    """A password in clear, links that may echo, and a connector without links are warned of."""
    links = '{source: {address: "a/#"}}\n          m: {source: {topic: "a/b"}}'
    plain = '{url: "mqtt://h", username: u, password: p}'
    found = warnings_of(text(plain, links))
    assert any("everybody on the way can read it: use mqtts://" in one for one in found)
    assert any(
        "brings back what m takes out if the provider speaks no MQTT 5" in one for one in found
    )
    assert not any(
        "m takes out" in one
        for one in warnings_of(text('{url: "mqtt://h", mqtt_version: "5"}', links))
    )
    assert any(
        "is refused where the provider of MQTT 3.1.1 knows no bridges" in one
        for one in warnings_of(text('{url: "mqtt://h", mqtt_version: "3.1.1"}', links))
    )
    alone = links.replace('"a/#"}', '"a/#"}, connection: dedicated')
    assert any(
        "brings back what link m of connector c takes out if the provider speaks no MQTT 5" in one
        for one in warnings_of(text('{url: "mqtt://h"}', alone))
    )
    empty = text().partition("        links")[0]
    assert any("carries nothing: it has no links" in one for one in warnings_of(empty))


@pytest.mark.parametrize(
    ("provider", "key", "whom"),
    [
        ('{url: "http://h", client_id: x}', "client_id", "MQTT or AMQP"),
        ('{url: "http://h", mqtt_version: "5"}', "mqtt_version", "MQTT"),
        ('{url: "mqtt://h", window: 5}', "window", "AMQP"),
        ('{url: "amqp://h", max_connections: 5}', "max_connections", "HTTP"),
    ],
)
def test_without_effect(
    warnings_of: Callable[[str], list[str]], provider: str, key: str, whom: str
) -> None:
    """What is for a provider of another protocol is warned of."""
    found = warnings_of(text(provider, "{source: {queue: q}, target: {address: a}}"))
    assert any(f"{key}: has no effect: it is for a provider of {whom}" in one for one in found)


def test_a_wrong_link_is_one(problems_of: Callable[[str], list[str]]) -> None:
    """A connector whose only link is wrong has one, and nobody says that it has none."""
    found = problems_of(text(link="{source: {queue: q, topic: t}}"))
    assert not any("no links" in one for one in found)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("topic: a/#", "topic_syntax: smf"),
        ("address: a/>", "topic_syntax: mqtt"),
        ("topic: a/>", ""),
    ],
)
def test_wildcard_of_the_other_dialect(
    warnings_of: Callable[[str], list[str]], source: str, told: str
) -> None:
    """A source with a wildcard that is none there is warned of."""
    found = [
        one for one in warnings_of(text(link=f"{{source: {{{source}}}}}")) if "no wildcard" in one
    ]
    assert len(found) == bool(told)
    assert all(told in one for one in found)


SPELLINGS = {
    "mqtt://localhost:1883@edge": [
        "mqtt://localhost",
        "mqtt://LocalHost.:1883",
        "mqtt://127.0.0.1",
        "mqtt://127.1",
        "mqtt://127.8.9.10",
        "mqtt://[::1]",
        "mqtt://[0:0:0:0:0:0:0:1]:1883",
        "mqtt://[::ffff:127.0.0.1]",
        "mqtt://0.0.0.0",
        "mqtt://0",
        "mqtt://broker.localhost",
    ],
    "mqtt://broker.example.org:1883": [
        "mqtt://broker.example.org",
        "mqtt://Broker.Example.ORG.:1883/",
    ],
    "mqtt://192.0.2.7:1884": ["mqtt://192.0.2.7:1884", "mqtt://[::ffff:c000:207]:1884"],
    "mqtt://[2001:db8::1]:1883": ["mqtt://[2001:DB8::1]", "mqtt://[2001:db8:0:0:0:0:0:1]"],
    "mqtts://localhost:8883@edge": ["mqtts://localhost"],
    "mqtt://localhosts:1883": ["mqtt://localhosts"],
    "mqtt://127.example.org:1883": ["mqtt://127.example.org"],
}
"""What names a provider in paths, and the URLs that mean it."""


@pytest.mark.parametrize(
    ("place", "url"), [(place, url) for place, urls in SPELLINGS.items() for url in urls]
)
def test_spellings_of_one_provider(place: str, url: str) -> None:
    """However an address is spelled, it names the same provider; one of the machine itself, the router's."""
    connector = Connector.model_validate({"provider": {"url": url}})
    assert place_of("edge", connector) == place


def test_a_provider_has_a_name() -> None:
    """It is the same over each address."""
    for url in ("mqtt://localhost", "mqtts://broker.example.org"):
        connector = Connector.model_validate({"provider": {"url": url, "name": "plant"}})
        assert place_of("edge", connector) == "provider://plant"


PAIRS: dict[str, tuple[str, str, str]] = {
    "one address, one name": ("url: 'mqtt://h'", "url: 'mqtt://h'", ""),
    "one address, two names": (
        "url: 'mqtt://h', name: one",
        "url: 'mqtt://h', name: two",
        "leads to mqtt://h:1883, as connector a does, under another name",
    ),
    "one of them has a name": (
        "url: 'mqtt://localhost', name: one",
        "url: 'mqtt://127.0.0.1'",
        "under another name: give both the same provider.name",
    ),
    "one that the other one falls back to": (
        "url: 'mqtt://h'",
        "url: 'mqtt://i', failover_urls: ['mqtt://H.:1883']",
        "leads to mqtt://h.:1883, as connector a does, under another name",
    ),
    "a common name": ("url: 'mqtt://h', name: one", "url: 'mqtt://i', name: one", ""),
    "one client id": (
        "url: 'mqtt://h', client_id: x",
        "url: 'mqtt://h', client_id: x",
        "has the client_id of connector a, x",
    ),
    "one client id elsewhere": (
        "url: 'mqtt://h', client_id: x",
        "url: 'mqtt://i', client_id: x",
        "",
    ),
}
"""Providers of two connectors, and what is told of the second one."""


@pytest.mark.parametrize("pair", PAIRS)
def test_logins_of_two_connectors(problems_of: Callable[[str], list[str]], pair: str) -> None:
    """One broker has one name, and each connector a session of its own there."""
    first, second, told = PAIRS[pair]
    lines = ["msg_vpns:", "  blue:", "    connectors:"]
    for name, provider in (("a", first), ("b", second)):
        lines += [
            f"      {name}:",
            f"        provider: {{{provider}}}",
            f"        links: {{l: {{source: {{address: '{name}/#'}}}}}}",
        ]
    found = [one for one in problems_of("\n".join(lines) + "\n") if "connector" in one]
    if told:
        (only,) = found
        assert told in only
    else:
        assert found == []


IN, OUT, AWAY = "{source: {address: 't/#'}}", "{source: {topic: 't/>'}}", "{source: {topic: 'u/>'}}"

WAYS: dict[str, tuple[str, str, str, str, str]] = {
    "both in": (IN, IN, "5", "error", "a message on t comes from mqtt://h:1883 twice"),
    "both out": (
        OUT,
        OUT,
        "5",
        "error",
        "goes to mqtt://h:1883 twice: by link l of connector a too",
    ),
    "other topics": (OUT, AWAY, "3.1.1", "", ""),
    "in and out, 5": (IN, OUT, "5", "", ""),
    "in and out, auto": (IN, OUT, "auto", "warning", "if the provider speaks no MQTT 5"),
    "in and out, 3.1.1": (IN, OUT, "3.1.1", "error", "MQTT 3.1.1 does not say where a message"),
    "renamed": (IN, "{source: {topic: 't/>'}, target: {address: 'v/{1}'}}", "3.1.1", "", ""),
    "selected": (OUT, "{source: {topic: 't/>', selector: 'x = 1'}}", "5", "", ""),
}
"""Links of two connectors to one provider, their version, and what is said of them."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("same", [True, False])
def test_two_connectors_to_one_provider(
    problems_of: Callable[[str], list[str]],
    warnings_of: Callable[[str], list[str]],
    way: str,
    same: bool,
) -> None:
    """What would cross twice, or come back, is refused with a topic for which it is so; only at one provider."""
    first, second, version, level, told = WAYS[way]
    lines = ["msg_vpns:", "  blue:", "    connectors:"]
    for name, link, host in (("a", first, "h"), ("b", second, "h" if same else "other")):
        lines += [
            f"      {name}:",
            f'        provider: {{url: "mqtt://{host}", mqtt_version: "{version}"}}',
            f"        links: {{l: {link}}}",
        ]
    document = "\n".join(lines) + "\n"
    wrong = same and level == "error"
    found = (problems_of if wrong else warnings_of)(document)
    if same and level:
        assert any(told in one for one in found), found
    else:
        assert not [one for one in found if "connectors" in one]


PROTOCOLS: dict[str, tuple[str, str, str, str]] = {
    "in by AMQP, out by MQTT": ("amqp", "{source: {address: topic://t}}", "mqtt", OUT),
    "in by MQTT, out by AMQP": (
        "mqtt",
        IN,
        "amqp",
        "{source: {topic: t}, target: {address: topic://t}}",
    ),
}


@pytest.mark.parametrize("way", PROTOCOLS)
@pytest.mark.parametrize("same", [True, False])
def test_two_protocols_of_one_provider(
    warnings_of: Callable[[str], list[str]], way: str, same: bool
) -> None:
    """A provider that speaks both may not hand on where a message has been."""
    into, back, out, away = PROTOCOLS[way]
    lines = ["msg_vpns:", "  blue:", "    connectors:"]
    for name, scheme, link, broker in (
        ("a", into, back, "one"),
        ("b", out, away, "one" if same else "two"),
    ):
        lines += [
            f"      {name}:",
            f"        provider: {{url: '{scheme}://{broker}', name: {broker}}}",
            f"        links: {{l: {link}}}",
        ]
    told = "brings back what connector b takes out by another protocol"
    assert any(told in one for one in warnings_of("\n".join(lines) + "\n")) == same


def test_many_links_are_compared_within_seconds(warnings_of: Callable[[str], list[str]]) -> None:
    """Beyond a bound the rest is not compared, which is told."""
    links = "\n".join(
        f"          l{number}: {{source: {{topic: 't{number}/>'}}}}" for number in range(700)
    )
    document = text(link=LINK) + links + "\n"
    began = time.monotonic()
    found = warnings_of(document)
    assert time.monotonic() - began < 20
    assert any("is not compared with other links" in one for one in found)
