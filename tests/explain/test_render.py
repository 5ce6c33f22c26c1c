"""The tree that people read."""

from rich.console import Console

from vpnrouter.explain.render import tree
from vpnrouter.explain.request import (
    BRIDGE,
    LOSS,
    NO,
    YES,
    BridgeState,
    Explanation,
    Rule,
    Step,
)


def lines(explanation: Explanation) -> list[str]:
    """The tree as text."""
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as caught:
        console.print(tree(explanation))
    return caught.get().splitlines()


def test_steps_rules_and_bridges() -> None:
    """A mark for each step, a place for each rule, and the bridges that are down."""
    crossed = Step(BRIDGE, YES, "over it", link_ns=2_500_000, count=2)
    crossed.rules = [Rule("max_ttl: 8", "edge.yaml", 7, 3, False), Rule("subscription a/>")]
    crossed.steps = [Step(LOSS, NO, "discarded: [red]")]
    told = Explanation("a/b", "direct", "edge", "blue", steps=[crossed], answer="0x00")
    told.bridges = [
        BridgeState("core", "v", "up", True, "edge/blue", "", Rule("")),
        BridgeState("core", "v", "b", False, "", "the bridge is disabled", Rule("x", "c.yaml", 4)),
    ]
    told.notes = ["nobody knows"]
    assert lines(told) == [
        "a/b direct",
        "├── ✓ over it (2 times) 2.50 ms over the link",
        "│   ├── max_ttl: 8 (the default) edge.yaml:7",
        "│   ├── subscription a/>",
        "│   └── ✗ discarded: [red]",
        "├── bridges that are down",
        "│   └── ✗ b into core/v: the bridge is disabled",
        "│       └── x c.yaml:4",
        "├── · the publisher is told: 0x00",
        "└── note: nobody knows",
    ]


def test_no_command_reaches_the_terminal() -> None:
    """A topic is what a stranger chose."""
    told = Explanation("a\x1b]0;x\x07", "direct", "e", "b", notes=["\x1b[31m"])
    assert "\x1b" not in "\n".join(lines(told))
