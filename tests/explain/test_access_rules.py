"""Which line of an ACL profile, or which profile, decided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from explain_asking import EDGE, ask, lines, step, steps

from vpnrouter.config.load import load
from vpnrouter.config.router import Loaded
from vpnrouter.explain.request import BRIDGE, NO

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_publisher_may_not(pair: Callable[..., list[Loaded]]) -> None:
    """The exception of the ACL profile that decided; no list of who else does not get it."""
    edge = """\
    client_usernames: {u: {acl_profile: most}}
    acl_profiles:
      most:
        client_connect: {default_action: allow}
        publish_topic:
          default_action: allow
          exceptions: [b/>, a/b]
"""
    mesh = pair(edge, "        remote_subscriptions: [a/>]\n")
    told = ask(mesh, client_username="u")
    lost = next(one for one in steps(told) if one.reason == "publish-topic-acl")
    assert lines(lost)[0] == ("exception a/b of publish_topic of ACL profile most", "edge.yaml", 13)
    assert not [one for one in steps(told) if one.kind == BRIDGE]
    assert step(ask(mesh, "a/c", client_username="u"), BRIDGE, "yes")


def test_a_login_that_is_refused(pair: Callable[..., list[Loaded]]) -> None:
    """No message at all."""
    edge = "    client_usernames: {u: {enabled: false}}\n"
    told = ask(pair(edge), client_username="u")
    assert told.steps[0].verdict == NO
    assert told.steps[0].text.endswith("login refused: 403 Client Username Is Shutdown")


def test_a_profile_that_sends_nothing_guaranteed(pair: Callable[..., list[Loaded]]) -> None:
    """The client would be disconnected: the attribute says why."""
    edge = (
        "      mute: {allow_guaranteed_msg_send_enabled: false}\n"
        "    client_usernames: {u: {client_profile: mute}}\n"
    )
    text = EDGE.replace("{default: {allow_bridge_connections_enabled: true}}", "") + edge
    told = ask([_written(pair, text)], client_username="u", mode="persistent")
    assert told.steps[0].verdict == NO
    assert told.steps[0].rules[-1].text == "allow_guaranteed_msg_send_enabled: false"


def _written(pair: Callable[..., list[Loaded]], text: str) -> Loaded:
    file = Path(pair()[0].positions.file)
    head = file.read_text(encoding="utf-8").partition("\n")[0]
    file.write_text(f"{head}\n{text}", encoding="utf-8")
    return load(str(file), overlay=False)
