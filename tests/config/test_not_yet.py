import re
from collections.abc import Callable

import pytest

from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import field_at
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.unsupported_keys import ANY, UNSUPPORTED, UnsupportedKey

BRIDGE = """
msg_vpns:
  blue:
    bridges:
      b:
        remote_authentication: {{basic: {{client_username: u}}}}
        remote_subscriptions: [a]
        remote_msg_vpns: [{{name: red, location: "{location}"{more}}}]
"""


@pytest.mark.parametrize("row", UNSUPPORTED, ids=lambda row: ".".join(map(str, row.path)))
def test_rows_name_known_keys(row: UnsupportedKey) -> None:
    """Each row of the table is about a key that a configuration can hold."""
    model: type[Model] = RouterConfig
    path = tuple("x" if step == ANY else step for step in row.path)
    assert field_at(model, path) is not None


def test_messages_say_what_happens() -> None:
    """Each message says that this version lacks it and what that means."""
    for row in UNSUPPORTED:
        assert re.search("this version.*; |by this version|this version removes", row.message)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "msg_vpns: {blue: {client_profiles: {p: {eliding: {enabled: true}}}}}",
            "2:41 msg_vpns.blue.client_profiles.p.eliding: eliding is not part of this version",
        ),
    ],
)
def test_warns(warnings_of: Callable[[str], list[str]], text: str, warning: str) -> None:
    """What this version does not do is told where it is written."""
    assert [one for one in warnings_of(text) if warning in one]


@pytest.mark.parametrize(
    "text",
    [
        "msg_vpns: {blue: {queues: }}",
        "msg_vpns: {blue: {queues: {}}}",
        "msg_vpns: {blue: }",
        BRIDGE.format(location="h:1", more=", tls_enabled: true, compressed_data_enabled: true"),
        BRIDGE.format(location="v:core", more=""),
        BRIDGE.format(location="h:1", more=", queue_binding: q, egress_flow_window_size: 9"),
        "trace: {directory: t}",
        'listeners: [{protocol: http, bind: "127.0.0.1:1"}]',
        "management: {users: {ann: {password: pw, role: admin}}}",
    ],
)
def test_does_not_warn(warnings_of: Callable[[str], list[str]], text: str) -> None:
    """Defaults and what says nothing are not warned about."""
    assert [one for one in warnings_of(text) if "this version" in one] == []


def test_each_place_is_told_once(warnings_of: Callable[[str], list[str]]) -> None:
    """Two profiles with eliding are two warnings, whatever it says."""
    eliding = "eliding: {enabled: true, delay: 5}"
    text = (
        f"msg_vpns:\n  blue:\n    client_profiles:\n      p: {{{eliding}}}\n      q: {{{eliding}}}"
    )
    assert [one.split()[0] for one in warnings_of(text) if "eliding is" in one] == ["5:11", "6:11"]
