"""Plans of the generator that looks for growth: what clients do, as data, and how a plan that fails is made shorter."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

USERNAMES: Final = 4
"""Client usernames that the connections of one plan share."""

Value = int | str | bool


class Step(NamedTuple):
    """Client `client` does `act` with these values; acts read how often from `count`."""

    client: int
    act: str
    values: dict[str, Value]


class Plan(NamedTuple):
    """What the connections of one plan do, one step after the other."""

    protocol: str
    clients: int
    steps: list[Step]

    def text(self) -> str:
        """The plan as one line, which `read` takes."""
        return json.dumps([self.protocol, self.clients, self.steps])

    def lines(self) -> str:
        """The plan for people."""
        shown = [
            f"{step.client} {step.act} "
            + " ".join(f"{name}={value}" for name, value in step.values.items())
            for step in self.steps
        ]
        return "\n    ".join((f"{self.protocol}, {self.clients} connections:", *shown))


def read(text: str) -> Plan:
    """The plan that its `text` has written. Raises ValueError."""
    protocol, clients, steps = json.loads(text)
    return Plan(protocol, clients, [Step(*step) for step in steps])


class Talker(Protocol):
    """One connection of a plan after the other: it does the steps of one client."""

    sent: int

    def do(self, act: str, values: dict[str, Value]) -> None:
        """Do one step. Raises OSError where the router does not listen."""

    def close(self) -> None:
        """Hang up."""


Drawn = Callable[[random.Random], dict[str, Value]]


class Vocabulary(NamedTuple):
    """What the clients of one protocol can do: the first act, and all acts with their weights and drawn values."""

    first: str
    acts: dict[str, tuple[float, Drawn]]


def draw_plan(draw: random.Random, protocol: str, words: Vocabulary) -> Plan:
    """A plan for one connection, or for several, of some acts each: often a few acts again and again."""
    clients = draw.choice((1, 1, 1, 1, 8, 40))
    # A plan has few kinds of acts, so that it goes to an extreme with them.
    names = [name for name in words.acts if name != words.first]
    weights = [words.acts[name][0] for name in names]
    kinds = draw.choices(names, weights, k=draw.choice((1, 2, 3, 5, 8)))
    scripts = [
        (act, words.acts[act][1](draw))
        for act in draw.choices(kinds, k=draw.choice((1, 2, 4, 8, 16)))
    ]
    steps: list[Step] = []
    first = words.acts[words.first][1](draw)
    for client in range(clients):
        steps.append(Step(client, words.first, first))
        mine = (
            scripts
            if draw.randrange(4)
            else [(act, words.acts[act][1](draw)) for act, _ in scripts]
        )
        steps += [Step(client, act, values) for act, values in mine]
    if clients > 1 and draw.randrange(2):
        # All clients do the first act before one does the second.
        steps = [
            step for offset in range(len(scripts) + 1) for step in steps[offset :: len(scripts) + 1]
        ]
    return Plan(protocol, clients, steps)


def shortened(plan: Plan, fails: Callable[[Plan], bool], tries: int) -> Plan:
    """The shortest plan found that fails, too: fewer steps, then smaller counts. `fails` runs one, `tries` times.

    Parts of the list are left out, halves first; then each count is halved.
    """
    steps = list(plan.steps)
    size = len(steps) // 2
    while size and tries > 0:
        at = 0
        while at < len(steps) and tries > 0:
            fewer = steps[:at] + steps[at + size :]
            tries -= 1
            if fewer and fails(plan._replace(steps=fewer)):
                steps = fewer
            else:
                at += size
        size //= 2
    for at in range(len(steps)):
        while tries > 0 and int(steps[at].values.get("count", 1)) > 1:
            halved = {**steps[at].values, "count": int(steps[at].values["count"]) // 2}
            fewer = [*steps[:at], steps[at]._replace(values=halved), *steps[at + 1 :]]
            tries -= 1
            if not fails(plan._replace(steps=fewer)):
                break
            steps = fewer
    return plan._replace(steps=steps)
