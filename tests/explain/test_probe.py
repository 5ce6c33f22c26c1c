"""Who publishes where nobody is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded

import pytest

from vpnrouter.explain.explain import explain
from vpnrouter.explain.request import ExplainRequest, UsageError

CLOSED = """\
msg_vpns:
  v:
    client_profiles: {bridging: {allow_bridge_connections_enabled: true}}
    acl_profiles: {never: {client_connect: {default_action: allow}}}
    client_usernames:
      bridge: {password: x, client_profile: bridging}
      mute: {password: x, acl_profile: never}
      able: {password: x}
"""


def test_one_who_may_publish_is_chosen(configured: Callable[..., Loaded]) -> None:
    """No account of bridges, and none that may not."""
    loaded = configured(CLOSED)
    told = explain([loaded], ExplainRequest("here", "v", "t"))
    assert told.client_username == "able"
    told = explain([loaded], ExplainRequest("here", "v", "t", client_username="mute"))
    assert [one.reason for one in told.losses] == ["publish-topic-acl"]


def test_nobody_may_log_in(configured: Callable[..., Loaded]) -> None:
    """Said in one line; and so is a name that is not there."""
    with pytest.raises(UsageError, match="nobody can log in to message VPN here/v"):
        explain([configured("msg_vpns: {v: {}}\n")], ExplainRequest("here", "v", "t"))
    with pytest.raises(UsageError, match="has no client username who"):
        explain([configured(CLOSED)], ExplainRequest("here", "v", "t", client_username="who"))
