"""Names, rules with their places in the files, and reasons in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from explain_asking import EDGE, ask, lines, step, steps

from vpnrouter.config.load import load
from vpnrouter.config.router import Loaded
from vpnrouter.core.discard_reasons import REASONS
from vpnrouter.core.guaranteed.refusals import DISCARD_NAMES
from vpnrouter.explain.mesh import MemoryMesh
from vpnrouter.explain.mesh_index import (
    WORDS,
    MeshIndex,
    attribute,
    client_of,
    in_words,
    rule,
)
from vpnrouter.explain.request import BRIDGE, NO
from vpnrouter.explain.visits import Visit
from vpnrouter.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded


def test_bridges_of_a_message_vpn(pair: Callable[..., list[Loaded]]) -> None:
    """Those that lead out of it, and the link that serves them."""
    index = MeshIndex(MemoryMesh(pair(), 1_700_000_000_000_000_000))
    (bridge,) = index.bridges_out_of(Visit("edge", "blue", (), None))
    assert bridge is index.bridge("core", "yellow", "in")
    link = index.serving(bridge)
    assert link is not None
    assert link.peer_router == "core"
    assert index.bridges_out_of(Visit("core", "yellow", (), None)) == []
    assert (client_of("#mqtt/c"), client_of("q")) == ("c", "")


def test_nothing_is_known_without_a_mesh() -> None:
    """No rule, no route."""
    index = MeshIndex(None)
    visit = Visit("edge", "blue", (), None)
    assert (index.loaded("edge"), index.route(visit), index.vpn(visit)) == (None, None, None)


if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.router import Loaded


def test_written_and_default(pair: Callable[..., list[Loaded]]) -> None:
    """The line of the key; of a default that of the object."""
    loaded = pair()[0]
    path = ("msg_vpns", "blue", "authentication", "basic", "enabled")
    found = attribute(loaded, path)
    assert (found.text, found.line, found.written) == ("enabled: false", 5, True)
    assert found.place == f"{loaded.positions.file}:5"
    missing = attribute(loaded, ("msg_vpns", "blue", "max_msg_size"))
    assert (missing.text, missing.line, missing.written) == ("max_msg_size: 10000000", 4, False)
    assert attribute(loaded, ("listeners", 0, "protocol")).text == "protocol: link"
    assert rule(None, (), "x").place == ""


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


def test_every_reason_of_a_loss_has_words() -> None:
    """Those of Direct messages, but for bytes that are no packet, and of endpoints, as both are named."""
    assert set(REASONS) - set(WORDS) == {"parse-error"}
    assert {*DISCARD_NAMES, *DISCARD_NAMES.values()} - set(WORDS) == set()
    assert in_words("msg-too-big") == "it is too big (msg-too-big)"
    assert in_words("something") == "something"
    assert (counted(1, "queue"), counted(2_000, "queue")) == ("1 queue", "2,000 queues")
