"""Makes the changes of a plan, router by router and step by step, or none of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vpnrouter.errors import OperationError
from vpnrouter.management.client import ManagementClient
from vpnrouter.plan.compare import Place, RouterPlan
from vpnrouter.plan.risks import CONNECTOR_UP, is_up

ORDER: Final = ("grow", "bridge", "trim")
"""Steps of a plan, one after the other at all routers (documents.py)."""

POLL_S: Final = 0.2
"""Seconds between looks whether bridges and connectors are up."""

_CARRYING: Final = ("up", "held", "paused", "disabled")
"""States of a link that the provider carries, or that is not to carry anything."""


@dataclass(slots=True)
class Outcome:
    """What was done. `failure` is "" where all was; `done` are (router, step) in the order they were made.

    `returned` are the routers that are as they were before, `stuck` those that could not be brought back,
    with why.
    """

    done: list[tuple[str, str]] = field(default_factory=list)
    failure: str = ""
    returned: list[str] = field(default_factory=list)
    stuck: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data for JSON."""
        return {
            "applied": not self.failure,
            "done": [{"router": router, "step": step} for router, step in self.done],
            "failure": self.failure,
            "returned": self.returned,
            "stuck": self.stuck,
        }


class PlanExecution:
    """Carries out plans. `told` hears of each step; `clock` and `sleep` are those of a process, in seconds.

    `settle_s` is how long bridges and connectors have to come up after their step; 0 asks for nothing.
    """

    def __init__(
        self,
        apis: Mapping[str, ManagementClient],
        report: Callable[[str], None],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        settle_s: float,
    ) -> None:
        self._apis = apis
        self._told = report
        self._clock = clock
        self._sleep = sleep
        self._settle_s = settle_s
        self._before: dict[str, str] = {}
        """By router: the digest to return to."""
        self._now: dict[str, str] = {}

    def __call__(self, plans: Sequence[RouterPlan]) -> Outcome:
        """Make every step of every plan; when one fails, bring all routers back to where they were.

        An interrupt (KeyboardInterrupt) is a failure like others.
        """
        outcome = Outcome()
        self._before = {plan.name: plan.digest for plan in plans}
        self._now = dict(self._before)
        try:
            for name in ORDER:
                for plan in plans:
                    self._step(plan, name, outcome)
                if name == "bridge":
                    self._wait_until_up(plans)
        except (OperationError, KeyboardInterrupt) as error:
            outcome.failure = str(error) or "interrupted"
            self._return(outcome)
        return outcome

    def _step(self, plan: RouterPlan, name: str, outcome: Outcome) -> None:
        for step in plan.steps:
            if step.name == name:
                self._told(f"{plan.name}: {name}")
                # Noted first: what is on its way when the answer gets lost may be in force.
                outcome.done.append((plan.name, name))
                answer = self._apis[plan.name].replace_config(step.document, self._now[plan.name])
                self._now[plan.name] = str(answer["digest"])

    def _wait_until_up(self, plans: Sequence[RouterPlan]) -> None:
        if not self._settle_s:
            return
        expected = [plan for plan in plans if plan.bridges or plan.connectors]
        until = self._clock() + self._settle_s
        while True:
            missing = [
                f"{kind} {plan.name} {vpn}/{name}: {why}"
                for plan in expected
                for kind, down in (
                    ("bridge", self._down(plan)),
                    ("connector", self._connectors_down(plan)),
                )
                for (vpn, name), why in down.items()
            ]
            if not missing:
                return
            if self._clock() >= until:
                raise OperationError(f"not up after {self._settle_s:g} s: {'; '.join(missing)}")
            self._sleep(POLL_S)

    def _down(self, plan: RouterPlan) -> dict[Place, str]:
        """Return the bridges that are not up, and why."""
        down = dict.fromkeys(plan.bridges, "it is not there")
        for row in self._apis[plan.name].bridges() if down else ():
            place = (row["msgVpnName"], row["bridgeName"])
            if place in down:
                if row["reconnecting"]:
                    down[place] = "it still uses its former connection"
                elif is_up(row):
                    del down[place]
                else:
                    down[place] = str(row["inboundFailureReason"] or row["inboundState"])
        return down

    def _connectors_down(self, plan: RouterPlan) -> dict[Place, str]:
        """Return the connectors that are not up with all their links, and why."""
        down = dict.fromkeys(plan.connectors, "it is not there")
        for row in self._apis[plan.name].connectors() if down else ():
            place = (row["msgVpnName"], row["connectorName"])
            if place not in down:
                continue
            waiting = [link for link in row["links"] if link["state"] not in _CARRYING]
            if row["state"] not in CONNECTOR_UP:
                down[place] = str(row["failure"] or row["state"])
            elif waiting:
                down[place] = "; ".join(
                    f"link {link['linkName']}: {link['stateReason'] or link['state']}"
                    for link in waiting
                )
            else:
                del down[place]
        return down

    def _return(self, outcome: Outcome) -> None:
        """Bring back the routers that were touched, the last one first."""
        for name in dict.fromkeys(router for router, _ in reversed(outcome.done)):
            self._told(f"{name}: back to what it was")
            try:
                api = self._apis[name]
                # A step that was refused has left the router as it was.
                if str(api.config()["digest"]) != self._before[name]:
                    api.return_config(self._before[name])
                outcome.returned.append(name)
            except OperationError as error:
                outcome.stuck[name] = str(error)
