"""Who takes part."""

from vpnrouter.demo import scene
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter


def test_filters_are_valid() -> None:
    """The bridges' filters are of the `*` `>` dialect, the clients' of MQTT's."""
    for text in (*scene.REMOTE_SUBSCRIPTIONS, scene.ALERTS):
        parse_filter(text, SMF)
    for one in scene.SUBSCRIBERS:
        parse_filter(one.filter, MQTT)


def test_every_kind_of_filter_is_used() -> None:
    """Among the remote subscriptions are a literal, one level, a prefix, and the rest."""
    levels = [text.split("/") for text in scene.REMOTE_SUBSCRIPTIONS]
    assert any("*" not in "/".join(one) and one[-1] != ">" for one in levels)
    assert any("*" in one for one in levels)
    assert any(level.endswith("*") and len(level) > 1 for one in levels for level in one)
    assert any(one[-1] == ">" for one in levels)


def test_every_place_is_watched() -> None:
    """Each message VPN has a publisher and a subscriber, and names are used once."""
    assert {one.place for one in scene.PUBLISHERS} == set(scene.PLACES)
    assert {one.place for one in scene.SUBSCRIBERS} == set(scene.PLACES)
    for everybody in (scene.PUBLISHERS, scene.SUBSCRIBERS):
        assert len({one.name for one in everybody}) == len(everybody)


def test_one_answers() -> None:
    """One subscriber answers what comes from blue, in yellow; alerts are heard on both sides."""
    assert [one.place for one in scene.SUBSCRIBERS if one.answers] == [scene.YELLOW]
    heard = [one.place for one in scene.SUBSCRIBERS if one.hears_alerts]
    assert heard == [scene.BLUE, scene.YELLOW]


def test_names_of_places() -> None:
    """A place is a router and a message VPN."""
    assert scene.router_of(scene.YELLOW) == "core"
    assert scene.vpn_of(scene.YELLOW) == "yellow"
