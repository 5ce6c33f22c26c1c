"""Plans as people read them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from rich.text import Text

from vpnrouter.cli._printed import console_for, line
from vpnrouter.cli._told import say_json
from vpnrouter.config.effects import Effect
from vpnrouter.plan.risks import effect_name

if TYPE_CHECKING:
    from vpnrouter.management.rows import Row
    from vpnrouter.plan.compare import RouterPlan

_MARKS: Final = {
    effect_name(Effect.ADDED): ("+", "green"),
    effect_name(Effect.REMOVED): ("-", "red"),
}
_CHANGED: Final = ("~", "yellow")


def print_plans(plans: Sequence["RouterPlan"], out: TextIO, *, as_json: bool) -> None:
    """Every plan: its changes, and what they cost."""
    if as_json:
        say_json([plan.as_dict() for plan in plans], 2)
        return
    console = console_for(out, soft_wrap=True)
    for plan in plans:
        for each in _lines(plan):
            console.print(each)


def _lines(plan: "RouterPlan") -> Iterator[Text]:
    yield line(f"{plan.name}: {_summary(plan)}", "bold")
    for change in plan.changes:
        yield _change(change)
    for text in plan.restart:
        yield line(f"  * {text}: not applied", "yellow")
    for risk in plan.risks:
        yield line(f"  ! {risk.kind}: {risk.text}", "bold yellow")
    for problem in plan.problems:
        yield line(f"  x {problem}", "bold red")
    if plan.unnamed:
        names = ", ".join(plan.unnamed)
        yield line(f"  message VPNs that stay as they are: {names}", "dim")


def _summary(plan: "RouterPlan") -> str:
    if plan.problems:
        return "refused"
    if plan.is_same:
        return "as the file says"
    number = len(plan.changes)
    return f"{number} change{'' if number == 1 else 's'}"


def _change(change: "Row") -> Text:
    mark, style = _MARKS.get(change["effect"], _CHANGED)
    return line(f"  {mark} {change['text']}", style)
