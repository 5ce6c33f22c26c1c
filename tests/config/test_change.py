import pytest

from vpnrouter.config.effects import (
    Change,
    Item,
    describe,
    show_change_path,
)
from vpnrouter.config.secrets import Password, Secret
from vpnrouter.config.settings_models import RemoteMsgVpn
from vpnrouter.settings.schema import Effect

BRIDGE = ("msg_vpns", "blue", "bridges", "from-x")


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (8, 4, "8 -> 4"),
        (True, False, "true -> false"),
        (None, "a/>", "none -> a/>"),
        (0.5, 1.0, "0.5 -> 1.0"),
        ((), ("a", "b"), "[] -> [a, b]"),
        (("x",), tuple("abcdefghijklmnopqrstuvwxyz"), "[x] -> 26 items"),
        ("x" * 61, "y", f"{'x' * 59}… -> y"),
        ("a\nb", "\u202eb", "a\\nb -> \\u202eb"),
        (Secret("old"), Secret("new"), "*** -> ***"),
        (None, Password("new"), "none -> ***"),
        ((Item(("red", "h:1")),), (), "[[red h:1]] -> []"),
        (None, RemoteMsgVpn(name="b", location="h", password=Secret("pw")), "none -> {…}"),
        ((RemoteMsgVpn(name="b", location="h"),), (), "1 items -> []"),
    ],
)
def test_one_line_without_secrets(before: object, after: object, shown: str) -> None:
    """A change is one line: where, from what to what, what it takes."""
    change = Change((*BRIDGE, "max_ttl"), before, after, Effect.IN_PLACE)
    assert describe(change) == f"msg_vpns.blue.bridges.from-x.max_ttl: {shown} (at once)"
    assert repr(change) == f"Change({describe(change)})"


def test_objects() -> None:
    """An object that came or went is told without what is in it."""
    remote = RemoteMsgVpn(name="b", location="h", password=Secret("pw"))
    path = (*BRIDGE, "remote_msg_vpns", Item(("b", "h")))
    assert describe(Change(path, None, remote, Effect.ADDED)) == (
        "msg_vpns.blue.bridges.from-x.remote_msg_vpns[b h]: added"
    )
    assert describe(Change(path, remote, None, Effect.REMOVED)).endswith("[b h]: removed")


def test_paths() -> None:
    """A path names items by what identifies them, and breaks no line."""
    item = Item(("mqtt", "127.0.0.1:0"), 1)
    assert show_change_path(("listeners", item, "enabled")) == (
        "listeners[mqtt 127.0.0.1:0 #2].enabled"
    )
    path = (*BRIDGE, "remote_subscriptions", Item(("a\nb",)))
    assert show_change_path(path).endswith("remote_subscriptions[a\\nb]")
    assert show_change_path(("[x]",)) == "[x]"


def test_each_effect_has_its_words() -> None:
    """Two effects are never told alike."""
    assert len({effect.value for effect in Effect}) == len(list(Effect)) == 9
