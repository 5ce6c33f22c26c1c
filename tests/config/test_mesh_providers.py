"""What connectors of several message VPNs bring twice is refused, with the ways and a topic that takes them."""

from typing import Any, Final

import pytest

from tests.config.mesh_kit import bridge, mesh, told, vpn

IN: Final = {"source": {"address": "t/#"}}
OUT: Final = {"source": {"topic": "t/>"}}
OTHER: Final = {"source": {"topic": "u/>"}}
SHARED: Final = {"source": {"address": "$share/g/t/#"}}
RENAMED: Final = {"source": {"address": "t/#"}, "target": {"topic": "u/{1}"}}
PICKED: Final = {"source": {"topic": "t/>", "selector": "x = 1"}}
OFF: Final = {**OUT, "enabled": False}

FROM_A: Final = {"b/v": ["a/v"]}
BOTH_WAYS: Final = {"b/v": ["a/v"], "a/v": ["b/v"]}
CHAIN: Final = {"b/v": ["a/v"], "c/v": ["b/v"]}


def connectors(links: list[dict[str, Any]], version: str, host: str) -> dict[str, Any]:
    """One connector with these links. `host` may have a name of the provider before it, as in plant=localhost."""
    name, _, host = host.rpartition("=")
    provider = {"url": f"mqtt://{host}", "mqtt_version": version}
    if name:
        provider["name"] = name
    return {"p": {"provider": provider, "links": {f"l{n}": link for n, link in enumerate(links)}}}


def findings(
    bridges: dict[str, list[str]],
    links: dict[str, list[dict[str, Any]]],
    version: str = "5",
    hosts: dict[str, str] | None = None,
    filters: tuple[str, ...] = ("t/>",),
    **more: Any,
) -> list[str]:
    """What the check says of connectors in message VPNs with bridges between them."""
    names = sorted({*bridges, *links, *(source for all_ in bridges.values() for source in all_)})
    vpns = {
        name: vpn(
            {
                f"from-{source[0]}": bridge(source, filters=filters, **more)
                for source in bridges.get(name, [])
            },
            **(
                {"connectors": connectors(links[name], version, (hosts or {}).get(name, "h"))}
                if name in links
                else {}
            ),
        )
        for name in names
    }
    return [line for line in told(mesh(vpns)) if "connectors" in line]


CASES: Final[dict[str, tuple[dict[str, list[str]], dict[str, list[dict[str, Any]]], list[str]]]] = {
    "no bridge": ({}, {"a/v": [IN, OUT], "b/v": [IN, OUT]}, []),
    "both bring it in": (
        FROM_A,
        {"a/v": [IN], "b/v": [IN]},
        [
            "b.yaml",
            "topic t/x of mqtt://h:1883 reaches b/v twice: ",
            ": mqtt://h:1883 -> b/v (connector p) and mqtt://h:1883 -> a/v (connector p) -> b/v",
        ],
    ),
    "both bring it in, two bridges away": (
        CHAIN,
        {"a/v": [IN], "c/v": [IN]},
        ["c.yaml", "and mqtt://h:1883 -> a/v (connector p) -> b/v -> c/v"],
    ),
    "both take it out": (
        FROM_A,
        {"a/v": [OUT], "b/v": [OUT]},
        [
            "b.yaml",
            "published in a/v reaches mqtt://h:1883 twice: a/v -> mqtt://h:1883 (connector p) and",
            " and a/v -> b/v -> mqtt://h:1883 (connector p)",
        ],
    ),
    "by the provider and by the bridge": (
        FROM_A,
        {"a/v": [OUT], "b/v": [IN]},
        [
            "b.yaml",
            "published in a/v reaches b/v twice: a/v -> b/v and",
            " and a/v -> mqtt://h:1883 (connector p) -> b/v (connector p)",
        ],
    ),
    "back to where it was published": (FROM_A, {"a/v": [IN], "b/v": [OUT]}, []),
    "in here, out there": (FROM_A, {"a/v": [IN], "b/v": [OTHER]}, []),
    "of one group": (FROM_A, {"a/v": [SHARED], "b/v": [SHARED]}, []),
    "renamed": (FROM_A, {"a/v": [IN], "b/v": [RENAMED]}, []),
    "picked": (FROM_A, {"a/v": [OUT], "b/v": [PICKED]}, []),
    "disabled": (FROM_A, {"a/v": [OUT], "b/v": [OFF]}, []),
    "other topics": (FROM_A, {"a/v": [OUT], "b/v": [OTHER]}, []),
}
"""Bridges, links, and what is said of them in MQTT 5."""


@pytest.mark.parametrize("case", CASES)
def test_kinds(case: str) -> None:
    """Each kind of double delivery is told once, as an error; and nothing else is."""
    bridges, links, expected = CASES[case]
    found = findings(bridges, links)
    if expected:
        (only,) = found
        assert all(part in only for part in expected), only
        assert ": warning:" not in only
    else:
        assert found == []


@pytest.mark.parametrize(
    ("version", "level"), [("5", None), ("auto", "warning"), ("3.1.1", "error")]
)
def test_back_to_where_it_was_published(version: str, level: str | None) -> None:
    """Only the path in MQTT 5 stops what a provider would give back."""
    found = findings(FROM_A, {"a/v": [IN], "b/v": [OUT]}, version)
    if level is None:
        assert found == []
    else:
        (only,) = found
        assert (": warning:" in only) == (level == "warning")
        assert "published in a/v reaches a/v twice" in only


def test_each_pair_is_told_once() -> None:
    """Both directions and many links over a bi-directional bridge: one finding for each pair and kind."""
    links = [IN, OUT, {"source": {"address": "t/x"}}, {"source": {"topic": "t/x"}}]
    found = findings(BOTH_WAYS, {"a/v": links, "b/v": links})
    kinds = ("of mqtt", "reaches mqtt", "in b/v reaches a", "in a/v reaches b")
    counts = [sum(kind in line for line in found) for kind in kinds]
    assert counts == [1, 1, 0, 1]


@pytest.mark.parametrize(
    ("hosts", "filters", "more"),
    [
        ({"b/v": "other"}, ("t/>",), {}),
        ({"a/v": "localhost", "b/v": "localhost"}, ("t/>",), {}),
        ({"a/v": "one=h", "b/v": "two=h"}, ("t/>",), {}),
        ({}, ("u/>",), {}),
        ({}, ("t/>", "!t/>"), {}),
        ({}, ("#share/g/t/>",), {}),
        ({}, ("t/>",), {"topic_mapping": [{"from": "t/>", "to": "u/{1}"}]}),
    ],
)
def test_ways_that_do_not_meet(
    hosts: dict[str, str], filters: tuple[str, ...], more: dict[str, Any]
) -> None:
    """Another provider, other topics, an exception, a share or a mapping on the bridge: nothing is sure."""
    assert findings(FROM_A, {"a/v": [IN, OUT], "b/v": [IN, OUT]}, "5", hosts, filters, **more) == []


@pytest.mark.parametrize(
    "hosts",
    [
        {"a/v": "H.", "b/v": "h"},
        {"a/v": "plant=localhost", "b/v": "plant=h"},
        {"a/v": "[2001:DB8::1]", "b/v": "[2001:db8:0::1]"},
    ],
)
def test_one_provider_by_several_addresses(hosts: dict[str, str]) -> None:
    """Spellings are one address, and a name makes addresses one provider."""
    (only,) = findings(FROM_A, {"a/v": [IN], "b/v": [IN]}, "5", hosts)
    assert "reaches b/v twice" in only


def test_acl_forbids_to_publish() -> None:
    """What nobody may publish does not leave twice."""
    profile = {"publish_topic": {"default_action": "disallow"}}
    one = vpn(
        connectors=connectors([OUT], "5", "h"),
        acl_profiles={"default": profile},
    )
    two = vpn({"from-a": bridge("a/v", filters=["t/>"])}, connectors=connectors([OUT], "5", "h"))
    assert len(told(mesh({"a/v": {**one, "acl_profiles": {}}, "b/v": two}), about="twice")) == 1
    assert told(mesh({"a/v": one, "b/v": two}), about="in a/v reaches mqtt") == []
