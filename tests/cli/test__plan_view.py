"""Plans as people read them; all of it is in tests/cli/test_plan.py, but for what a plan rarely has."""

import io

from vpnrouter.cli._mesh import print_plans
from vpnrouter.plan.compare import RouterPlan


def test_what_holds_only_from_the_next_start() -> None:
    """It is told, and that it is not applied."""
    plan = RouterPlan(
        name="edge",
        digest="d",
        changes=({"path": ["a"], "text": "a: 1 -> 2 (at once)", "effect": "in-place"},),
        restart=("router.data_dir: a -> b (needs restart)",),
        risks=(),
        problems=(),
        unnamed=(),
        steps=(),
        bridges=(),
    )
    out = io.StringIO()
    print_plans([plan], out, as_json=False)
    assert out.getvalue().splitlines() == [
        "edge: 1 change",
        "  ~ a: 1 -> 2 (at once)",
        "  * router.data_dir: a -> b (needs restart): not applied",
    ]
