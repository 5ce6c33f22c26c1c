"""What clients may publish and what bridges may subscribe to, held against the rules of the core."""

from typing import Any

import pytest

from vpnrouter.config.mesh.topics import (
    ALL_OF_IT,
    NOTHING,
    PART_OF_IT,
    Publishers,
    Topics,
    account_of,
    may_subscribe,
)
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.topics.grammar import SMF, parse_filter


def vpn(publish: dict[str, Any] | None = None, **account: Any) -> MsgVpn:
    """A message VPN with one client username, alice, and her ACL profile."""
    profile = {"publish_topic": publish} if publish is not None else {}
    return MsgVpn.model_validate(
        {
            "acl_profiles": {"hers": profile},
            "client_usernames": {"alice": {"password": "p", "acl_profile": "hers", **account}},
        }
    )


def part(msg_vpn: MsgVpn, text: str) -> str | None:
    """An example of what may be published of a filter."""
    topics = Topics()
    wanted = topics.of(parse_filter(text, SMF))
    assert wanted is not None
    found = Publishers(topics, msg_vpn).part_of(wanted)
    return topics.example(found) if found is not None else None


@pytest.mark.parametrize(
    ("rule", "wanted", "expected"),
    [
        ({"default_action": "allow"}, "$queue/q", "$queue/q"),
        ({"default_action": "allow", "exceptions": ["a/>"]}, "a/b", None),
        ({"default_action": "allow", "exceptions": ["a/>"]}, "*/b", "x/b"),
        ({"default_action": "allow", "exceptions": ["a/$client-username"]}, "a/alice", None),
        ({"default_action": "allow", "exceptions": ["a/$client-username"]}, "a/bob", "a/bob"),
        ({"default_action": "allow", "exceptions": ["a/$client-id"]}, "a/b", "a/b"),
        ({"exceptions": ["a/>"]}, "*/b", "a/b"),
        ({"exceptions": ["a/>"]}, "b/>", None),
        ({"exceptions": ["a/$client-username"]}, "a/*", "a/alice"),
        ({"exceptions": ["a/$client-username"]}, "a/bob", None),
        ({"exceptions": ["a/$client-id/x"]}, "a/b/*", "a/b/x"),
        ({"exceptions": ["a/+"], "topic_syntax": "mqtt"}, "a/>", "a/x"),
        ({}, ">", None),
    ],
)
def test_publishers(rule: dict[str, Any], wanted: str, expected: str | None) -> None:
    """The part of a filter that somebody may publish, with the names filled in."""
    assert part(vpn({"default_action": "disallow", **rule}), wanted) == expected


def test_who_cannot_log_in_publishes_nothing() -> None:
    """A client username that is disabled or has no password counts only where it may log in."""
    allow = {"default_action": "allow"}
    assert part(vpn(allow), "w") == "w"
    assert part(vpn(allow, enabled=False), "w") is None
    assert part(vpn(allow, password=None), "w") is None
    certificates = vpn(allow, password=None).model_copy(
        update={"authentication": MsgVpn.model_validate(
            {"authentication": {"client_cert": {"enabled": True}}}
        ).authentication}
    )  # fmt: skip
    assert part(certificates, "w") == "w"


def test_anybody_publishes_without_authentication() -> None:
    """Where nobody has to say who he is, the rules of `default` hold, which allow all."""
    data = MsgVpn.model_validate({"authentication": {"basic": {"enabled": False}}})
    assert part(data, "w") == "w"
    assert account_of(data, "anybody") is data.client_usernames["default"]
    assert account_of(MsgVpn(), "anybody") is None


@pytest.mark.parametrize(
    ("rule", "wanted", "expected"),
    [
        ({"default_action": "allow"}, "w/>", ALL_OF_IT),
        ({"default_action": "allow", "exceptions": ["w/secret"]}, "w/>", PART_OF_IT),
        ({"default_action": "allow", "exceptions": [">"]}, "w/>", NOTHING),
        ({"exceptions": ["w/>"]}, "w/a/*", ALL_OF_IT),
        ({"exceptions": ["w/a"]}, "w/*", PART_OF_IT),
        ({"exceptions": ["w/$client-username/>"]}, "w/alice/>", ALL_OF_IT),
        ({"exceptions": ["w/$client-id/>"]}, "w/alice/>", NOTHING),
        ({"exceptions": ["w/>"]}, "#share/g/w/a", ALL_OF_IT),
    ],
)
def test_may_subscribe(rule: dict[str, Any], wanted: str, expected: int) -> None:
    """The subscribe rules are those of the core, for the bridge's client name."""
    msg_vpn = MsgVpn.model_validate(
        {
            "acl_profiles": {"hers": {"subscribe_topic": {"default_action": "disallow", **rule}}},
            "client_usernames": {"alice": {"password": "p", "acl_profile": "hers"}},
        }
    )
    client = "#bridge/r/v/b"
    assert may_subscribe(msg_vpn, "alice", client, parse_filter(wanted, SMF)) == expected
