"""Write docs/bridge-states.md from the tables in vpnrouter/bridges/bridge.py.

    python docs/make_bridge_states.py

tests/bridges/test_bridge.py fails while the page differs from what this writes.
"""

import inspect
import re
from enum import StrEnum
from pathlib import Path

from vpnrouter.bridges import bridge
from vpnrouter.bridges.bridge import (
    INBOUND,
    OUTBOUND,
    Inbound,
    Input,
    Outbound,
    Peer,
)

PAGE = Path(__file__).parent / "bridge-states.md"


def meanings(enum: type[StrEnum]) -> dict[str, str]:
    """The string under each member in the source, by the member's value; "" where there is none."""
    source = inspect.getsource(enum)
    pairs = re.findall(r'= "([a-z-]+)"\n(?:    """(.*?)""")?', source, re.DOTALL)
    return {value: " ".join(text.split()) for value, text in pairs}


def _diagram() -> list[str]:
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f'    state "{state}" as {state.name.lower()}' for state in Inbound]
    lines.append(f"    [*] --> {Inbound.INIT.name.lower()}")
    edges: dict[tuple[Inbound, Inbound], list[str]] = {}
    for (state, given), after in INBOUND.items():
        if given is not Input.DISABLE or state is Inbound.INIT:
            edges.setdefault((state, after), []).append(given)
    lines += [
        f"    {state.name.lower()} --> {after.name.lower()}: {', '.join(given)}"
        for (state, after), given in edges.items()
    ]
    lines.append("```")
    return lines


def page() -> str:
    """The whole page."""
    lines = [
        "# States of a bridge",
        "",
        "This page lists the states of a bridge and their transitions. `docs/make_bridge_states.py` generates it",
        "from `vpnrouter/bridges/bridge.py`. [bridges.md](bridges.md#states-and-failure-reasons) lists what to do",
        "in each state.",
        "",
        "## Inbound",
        "",
        "Each enabled state also accepts `disable`, which leads to `disabled`. The diagram leaves this out.",
        "",
        *_diagram(),
        "",
        "| state | meaning | input → next state |",
        "|---|---|---|",
    ]
    told = meanings(Inbound)
    for state in Inbound:
        takes = [
            f"`{given}` → {'stays' if after is state else f'`{after}`'}"
            for (at, given), after in INBOUND.items()
            if at is state
        ]
        up = " (up)" if state in bridge.UP else ""
        lines.append(f"| `{state}`{up} | {told[state]} | {'<br>'.join(takes)} |")
    lines += ["", "| input | meaning |", "|---|---|"]
    told = meanings(Input)
    lines += [f"| `{given}` | {told[given]} |" for given in Input if told[given]]
    lines += ["", "## Outbound", "", "| state | meaning | input → next state |", "|---|---|---|"]
    told = meanings(Outbound)
    for out in Outbound:
        takes = [f"`{heard}` → `{after}`" for (at, heard), after in OUTBOUND.items() if at is out]
        lines.append(f"| `{out}` | {told[out]} | {'<br>'.join(takes)} |")
    lines += ["", f"Inputs: {', '.join(f'`{heard}`' for heard in Peer)}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
