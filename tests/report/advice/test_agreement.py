from collections.abc import Callable

from vpnrouter.report.advice.context import Scene
from vpnrouter.report.advice.subscriptions import apply_configuration, write_down
from vpnrouter.report.schema import ERROR, WARNING, Finding

MakeScene = Callable[..., Scene]
MakeFinding = Callable[..., Finding]


def test_what_follows_goes_without_saying(scene: MakeScene, finding: MakeFinding) -> None:
    """A missing message VPN has no bridges, and a missing bridge has no subscriptions."""
    findings = [
        finding("missing_vpn", "a/x", severity=ERROR, detail="at f:1:1"),
        finding("missing_bridge", "b/x > a/x", severity=ERROR, bridge="p"),
        finding("missing_bridge", "b/x > a/y", severity=ERROR, bridge="q"),
        finding("missing_subscription", "b/x > a/y", severity=ERROR, bridge="q", topic="t"),
    ]
    (item,) = apply_configuration(scene(*findings), findings)
    assert item.advice == (
        "See whether router a runs with the configuration given, and why it lacks message VPN a/x,"
        " bridge q (b/x to a/y)."
    )
    assert item.evidence == (
        "1 message VPN, 1 bridge configured and not seen; of the first: at f:1:1."
    )
    assert (item.severity, item.router, item.vpn) == (ERROR, "a", None)


def test_one_missing_subscription(scene: MakeScene, finding: MakeFinding) -> None:
    """Alone, it is named in full."""
    one = finding("missing_subscription", "b/x > a/y", bridge="q", topic="t", client="c")
    (item,) = apply_configuration(scene(one), [one])
    assert "subscription t of bridge q (b/x to a/y)" in item.advice
    assert (item.bridge, item.topic, item.client) == ("q", "t", "c")


def test_what_no_file_has(scene: MakeScene, finding: MakeFinding) -> None:
    """To be written down, or to go."""
    findings = [
        finding("unknown_vpn", "a/x", detail="was seen, and is not configured"),
        finding("unknown_bridge", "b/x > a/y", bridge="q", messages=7),
    ]
    (item,) = write_down(scene(*findings), findings)
    assert item.advice.endswith("message VPN a/x, bridge q (b/x to a/y).")
    assert (item.gain, item.severity) == (7, WARNING)
