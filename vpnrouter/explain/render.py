"""Shows an explanation as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.markup import escape
from rich.tree import Tree

from vpnrouter.explain.request import NO, NOTE, YES
from vpnrouter.text import printable
from vpnrouter.units import MILLISECOND_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.explain.request import BridgeState, ConnectorState, Explanation, Rule, Step

_MARKS: Final = {
    YES: "[green]✓[/green]",
    NO: "[red]✗[/red]",
    NOTE: "[yellow]·[/yellow]",
}


def tree(explanation: Explanation) -> Tree:
    """Return the steps of an explanation with the rules that decided, what is down, and the notes."""
    trace = f" (trace {explanation.trace_id})" if explanation.trace_id else ""
    top = Tree(f"[bold]{escape(printable(explanation.topic))}[/bold] {explanation.mode}{trace}")
    for step in explanation.steps:
        _add(top, step)
    _add_down(top, "bridges", "into", explanation.bridges)
    _add_down(top, "connectors", "of", explanation.connectors)
    if explanation.answer:
        top.add(f"{_MARKS[NOTE]} the publisher is told: {escape(printable(explanation.answer))}")
    for note in explanation.notes:
        top.add(f"[dim]note: {escape(printable(note))}[/dim]")
    return top


def _add_down(
    top: Tree, kind: str, relation: str, states: Sequence[BridgeState | ConnectorState]
) -> None:
    down = [state for state in states if not state.up]
    if not down:
        return
    branch = top.add(f"[bold]{kind} that are down[/bold]")
    for state in down:
        name = f"{state.name} {relation} {state.router}/{state.msg_vpn}"
        leaf = branch.add(f"{_MARKS[NO]} {escape(printable(name))}: {escape(printable(state.why))}")
        leaf.add(_rule(state.rule))


def _add(branch: Tree, step: Step) -> None:
    times = f" ({step.count} times)" if step.count > 1 else ""
    spent = []
    if step.link_ns >= 0:
        spent.append(f"{step.link_ns / MILLISECOND_NS:.2f} ms over the link")
    if step.since_ns > 0:
        spent.append(f"{step.since_ns / MILLISECOND_NS:.2f} ms after it came in")
    when = f" [cyan]{', '.join(spent)}[/cyan]" if spent else ""
    leaf = branch.add(f"{_MARKS[step.verdict]} {escape(printable(step.text))}{times}{when}")
    for rule in step.rules:
        leaf.add(_rule(rule))
    for below in step.steps:
        _add(leaf, below)


def _rule(rule: Rule) -> str:
    text = escape(printable(rule.text))
    default = " (the default)" if not rule.written and rule.file else ""
    place = f" [blue]{escape(printable(rule.place))}[/blue]" if rule.file else ""
    return f"[dim]{text}{default}[/dim]{place}"
