"""Tests of what a request may give an object: names, kinds of values, what the router does not have."""

from typing import Any

import pytest

from vpnrouter.errors import RequestError
from vpnrouter.management.config.document_changes import WriteRequest, key_of, read_given
from vpnrouter.management.config.kinds import TYPES
from vpnrouter.settings import kinds

KNOWN = {"msgVpnName": "blue", "queueName": "q"}


def refusal(kind: Any, body: dict[str, Any], known: Any = None, **asked: Any) -> RequestError:
    """How a body is refused."""
    with pytest.raises(RequestError) as caught:
        read_given(kind, known or {}, body, WriteRequest(**asked))
    return caught.value


def test_attributes_are_taken_by_name() -> None:
    """Attributes are taken by name."""
    body = {
        "maxTtl": 3,
        "egressEnabled": True,
        "owner": "o",
        "queueName": "q",
        "msgVpnName": "blue",
    }
    given = read_given(TYPES[kinds.QUEUE], KNOWN, body, WriteRequest())
    assert given == {"maxTtl": 3, "egressEnabled": True, "owner": "o"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxTtl", "3"),
        ("maxTtl", 3.0),
        ("maxTtl", True),
        ("maxTtl", None),
        ("maxTtl", -1),
        ("maxTtl", 1 << 99),
        ("egressEnabled", 1),
        ("egressEnabled", "true"),
        ("owner", 5),
        ("owner", ["a"]),
        ("owner", "\ud800"),
        ("owner", "o" * 190),
        ("permission", "everything"),
        ("permission", ""),
        ("queueName", "other"),
        ("queueName", None),
        ("msgVpnName", "red"),
        ("nothing", 1),
        ("", 1),
        ("\ud800", 1),
    ],
)
def test_what_is_no_value_of_an_attribute_is_refused(name: str, value: Any) -> None:
    """What is no value of an attribute is refused."""
    error = refusal(TYPES[kinds.QUEUE], {name: value}, KNOWN)
    assert (error.code, error.status, error.http_status) == (11, "INVALID_PARAMETER", 400)
    assert name.encode("ascii", "backslashreplace").decode() in str(error)


def test_a_misspelt_name_is_told_with_the_right_one() -> None:
    """A misspelt name is told with the right one."""
    assert "did you mean maxTtl?" in str(refusal(TYPES[kinds.QUEUE], {"maxTTL": 1}))


@pytest.mark.parametrize(
    ("kind", "name", "default", "other"),
    [
        (TYPES[kinds.QUEUE], "consumerAckPropagationEnabled", True, False),
        (
            TYPES[kinds.CLIENT_PROFILE],
            "eventEgressFlowCountThreshold",
            {"clearPercent": 60, "setPercent": 80},
            {},
        ),
        (TYPES[kinds.MSG_VPN], "alias", "", "red"),
        (TYPES[kinds.MSG_VPN], "serviceMqttPlainTextListenPort", 0, 1883),
        (TYPES[kinds.MSG_VPN], "dmrEnabled", False, 0),
        (TYPES[kinds.MSG_VPN], "authenticationBasicType", "internal", "ldap"),
        (TYPES[kinds.CLIENT_PROFILE], "tcpMaxSegmentSize", 1460, 1400),
        (TYPES[kinds.BRIDGE], "remoteAuthenticationClientCertContent", "", "PEM"),
        (TYPES[kinds.REMOTE_MSG_VPN], "unidirectionalClientProfile", "#client-profile", "p"),
    ],
)
def test_what_this_router_does_not_have_is_taken_as_the_fields_default_alone(
    kind: Any, name: str, default: Any, other: Any
) -> None:
    """What this router does not have is taken as the field's default alone."""
    assert read_given(kind, {}, {name: default}, WriteRequest()) == {}
    error = refusal(kind, {name: other})
    assert (error.code, error.status, error.http_status) == (14, "NOT_SUPPORTED", 400)
    assert name in str(error)


def test_deprecated_attributes_are_tolerated() -> None:
    """Deprecated attributes are tolerated."""
    body = {"tcpMaxWindowSize": 12, "allowCutThroughForwardingEnabled": True}
    assert read_given(TYPES[kinds.CLIENT_PROFILE], {}, body, WriteRequest()) == {}


def test_a_password_needs_its_name_and_its_value_is_not_told() -> None:
    """A password needs its name and its value is not told."""
    error = refusal(TYPES[kinds.BRIDGE], {"remoteAuthenticationBasicPassword": "hidden-thing"})
    assert "remoteAuthenticationBasicClientUsername" in str(error)
    assert "hidden-thing" not in str(error)
    error = refusal(TYPES[kinds.BRIDGE], {"remoteAuthenticationBasicClientUsername": "u"})
    assert "remoteAuthenticationBasicPassword" in str(error)
    for wrong in (12345, "x" * 500, "\ud800"):
        error = refusal(TYPES[kinds.BRIDGE], {"remoteAuthenticationBasicPassword": wrong})
        assert str(wrong)[:4] not in str(error).encode("ascii", "backslashreplace").decode()


def test_a_key_needs_all_its_required_parts() -> None:
    """A key needs all its required parts."""
    assert key_of(TYPES[kinds.BRIDGE], {"bridgeName": "b", "bridgeVirtualRouter": "auto"}) == (
        "b",
        "auto",
    )
    remote = {"remoteMsgVpnName": "v", "remoteMsgVpnLocation": "h:1"}
    assert key_of(TYPES[kinds.REMOTE_MSG_VPN], remote) == ("v", "h:1", "")
    for body, code in (
        ({"bridgeName": "b"}, 11),
        ({"bridgeVirtualRouter": "auto"}, 11),
        ({"bridgeName": "b", "bridgeVirtualRouter": "primary"}, 14),
        ({"bridgeName": "", "bridgeVirtualRouter": "auto"}, 11),
        ({"bridgeName": 7, "bridgeVirtualRouter": "auto"}, 11),
    ):
        with pytest.raises(RequestError) as caught:
            key_of(TYPES[kinds.BRIDGE], body)
        assert caught.value.code == code, body


def test_files_of_the_machine_are_named_by_users_of_all_message_vpns_alone() -> None:
    """Files of the machine are named by users of all message vpns alone."""
    body = {"remoteAuthenticationClientCertKey": "/etc/key.pem"}
    assert read_given(TYPES[kinds.BRIDGE], {}, body, WriteRequest()) == body
    error = refusal(TYPES[kinds.BRIDGE], body, may_name_files=False)
    assert "remoteAuthenticationClientCertKey" in str(error)
    empty = {"remoteAuthenticationClientCertKey": ""}
    assert read_given(TYPES[kinds.BRIDGE], {}, empty, WriteRequest(may_name_files=False)) == empty


def test_records_are_taken_by_the_names_of_their_attributes() -> None:
    """Records are taken by the names of their attributes."""
    mapped = {"topicMapping": [{"addPrefix": "a/", "direction": "out"}, {"from": "a", "to": "b"}]}
    taken = read_given(TYPES[kinds.BRIDGE], {}, mapped, WriteRequest())["topicMapping"]
    assert taken == [{"add_prefix": "a/", "direction": "out"}, {"from": "a", "to": "b"}]
    for wrong in ("a", ["a"], [{"prefix": "a"}], [{"addPrefix": 1}], [None], {"addPrefix": "a"}):
        assert refusal(TYPES[kinds.BRIDGE], {"topicMapping": wrong}).code == 11


def test_an_object_is_taken_by_the_names_inside() -> None:
    """An object is taken by the names inside."""
    name = "eventBindCountThreshold"
    taken = read_given(TYPES[kinds.QUEUE], {}, {name: {"setPercent": 90}}, WriteRequest())
    assert taken == {name: {"set_percent": 90}}
    for wrong in (90, [90], {"percent": 1}, {"setPercent": "1"}, {"setPercent": 1 << 80}):
        assert refusal(TYPES[kinds.QUEUE], {name: wrong}).code == 11
