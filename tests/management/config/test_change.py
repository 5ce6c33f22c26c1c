"""Tests of how a document changes; most of it by way of test_routes.py."""

from typing import Any

import pytest

from vpnrouter.errors import RequestError
from vpnrouter.management.config.document_changes import (
    create,
    delete,
    patch,
    place_of,
    replace,
)
from vpnrouter.management.config.kinds import QUEUE, REMOTE_MSG_VPN, TRUSTED_COMMON_NAME

KEYS = (("blue",), ("q",))
BRIDGE = (("blue",), ("b", "auto"))


def document() -> dict[str, Any]:
    """A message VPN with a bridge."""
    remotes = [{"name": "red", "location": "h"}, {"name": "red", "location": "i"}]
    return {"msg_vpns": {"blue": {"bridges": {"b": {"remote_msg_vpns": remotes}}}}}


def test_where_an_object_stands() -> None:
    """Names and indexes; a trusted common name stands in the message VPN and not in the bridge."""
    written = document()
    assert place_of(written, REMOTE_MSG_VPN, (*BRIDGE, ("red", "i", ""))) == (
        *("msg_vpns", "blue", "bridges", "b", "remote_msg_vpns"),
        1,
    )
    create(written, TRUSTED_COMMON_NAME, (*BRIDGE, ("far",)), {})
    assert place_of(written, TRUSTED_COMMON_NAME, (*BRIDGE, ("far",))) == (
        *("msg_vpns", "blue", "bridging", "tls_server_cert", "trusted_common_names"),
        0,
    )


def test_a_text_that_is_empty_is_no_value() -> None:
    """It takes the key away, for null means that in an overlay."""
    written = document()
    create(written, QUEUE, KEYS, {"owner": "o", "egressEnabled": True})
    queue = written["msg_vpns"]["blue"]["queues"]["q"]
    assert queue == {
        "owner": "o",
        "egress_enabled": True,
        "ingress_enabled": False,
        "permission": "no-access",
    }
    patch(written, QUEUE, KEYS, {"owner": ""})
    assert "owner" not in queue
    patch(written, QUEUE, KEYS, {"owner": ""})
    assert None not in queue.values()


def test_a_replaced_object_keeps_what_is_not_its_attributes() -> None:
    """Its subscriptions are objects of their own."""
    written = document()
    create(written, QUEUE, KEYS, {"maxTtl": 3})
    written["msg_vpns"]["blue"]["queues"]["q"]["subscriptions"] = ["a"]
    replace(written, QUEUE, KEYS, {"permission": "delete"})
    assert written["msg_vpns"]["blue"]["queues"]["q"] == {
        "permission": "delete",
        "egress_enabled": False,
        "ingress_enabled": False,
        "subscriptions": ["a"],
    }


def test_what_is_not_there() -> None:
    """Neither the object nor what it would stand in."""
    for how in (patch, delete):
        given: list[Any] = [{}] if how is patch else []
        with pytest.raises(RequestError, match="queue q in msgVpn blue"):
            how(document(), QUEUE, KEYS, *given)
    with pytest.raises(RequestError, match="msgVpn gone"):
        create(document(), QUEUE, (("gone",), ("q",)), {})
