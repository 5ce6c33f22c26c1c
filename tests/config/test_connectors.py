"""Checks of connectors: each mistake is one problem that says what is wrong, and where."""

import time
from collections.abc import Callable

import pytest

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
LINK = '{source: {address: "a/#"}}'


def text(provider: str = GOOD, link: str = LINK) -> str:
    """A configuration with one connector."""
    return LINES.format(provider=provider, link=link)


@pytest.mark.parametrize(
    ("provider", "link", "told"),
    [
        ("{}", LINK, "has no provider.url"),
        ('{url: "http://h"}', LINK, "does not begin with one of mqtt://, mqtts://"),
        ('{url: "mqtt://u:p@h"}', LINK, "a URL has no login in it"),
        ('{url: "mqtt://h", password: x}', LINK, "needs a username beside it"),
        ('{url: "mqtt://h", client_cert: {}}', LINK, "needs TLS to every address: mqtts://"),
        ('{url: "mqtts://h", client_cert: {}}', LINK, "has no certificate"),
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
        (GOOD, "{source: {address: a, selector: x = 1}}", "source.selector is for a queue or"),
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
    "link",
    [
        LINK,
        "{source: {address: $share/g/a/+}, target: {topic: 'b/{1}'}}",
        "{source: {queue: q}, target: {address: 'b/{1}'}, quality_of_service: once-and-only-once}",
        "{source: {topic: a/*/>, selector: x > 1}, target: {address: '{2}/{1}'}}",
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
        "brings back" in one
        for one in warnings_of(text('{url: "mqtt://h", mqtt_version: "5"}', links))
    )
    empty = text().partition("        links")[0]
    assert any("carries nothing: it has no links" in one for one in warnings_of(empty))


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
