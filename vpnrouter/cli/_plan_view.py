"""Plans as people read them."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console
from rich.text import Text

from vpnrouter.config.change import Effect
from vpnrouter.plan.risks import effect_name

if TYPE_CHECKING:
    from vpnrouter.management.attributes import Row
    from vpnrouter.plan.compare import RouterPlan

_MARKS: Final = {
    effect_name(Effect.ADDED): ("+", "green"),
    effect_name(Effect.REMOVED): ("-", "red"),
}
_CHANGED: Final = ("~", "yellow")


def print_plans(plans: Sequence["RouterPlan"], out: TextIO, *, as_json: bool) -> None:
    """Every plan: its changes, and what they cost."""
    if as_json:
        print(json.dumps([plan.as_dict() for plan in plans], indent=2), file=out)
        return
    console = Console(file=out, soft_wrap=True, highlight=False, markup=False)
    for plan in plans:
        for line in _lines(plan):
            console.print(line)


def _lines(plan: "RouterPlan") -> Iterator[Text]:
    yield Text(f"{plan.name}: {_summary(plan)}", style="bold")
    for change in plan.changes:
        yield _change(change)
    for text in plan.restart:
        yield Text(f"  * {text}: not applied", style="yellow")
    for risk in plan.risks:
        yield Text(f"  ! {risk.kind}: {risk.text}", style="bold yellow")
    for problem in plan.problems:
        yield Text(f"  x {problem}", style="bold red")
    if plan.unnamed:
        names = ", ".join(plan.unnamed)
        yield Text(f"  message VPNs that stay as they are: {names}", style="dim")


def _summary(plan: "RouterPlan") -> str:
    if plan.problems:
        return "refused"
    if plan.is_same:
        return "as the file says"
    number = len(plan.changes)
    return f"{number} change{'' if number == 1 else 's'}"


def _change(change: "Row") -> Text:
    mark, style = _MARKS.get(change["effect"], _CHANGED)
    return Text(f"  {mark} {change['text']}", style=style)
