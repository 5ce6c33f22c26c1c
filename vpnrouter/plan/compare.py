"""Compares a mesh file with its routers over their management API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vpnrouter.config.parse import Plain
from vpnrouter.errors import OperationError
from vpnrouter.management.answers.rows import Row
from vpnrouter.management.client import ManagementClient
from vpnrouter.plan.documents import Step, steps, unnamed, wanted
from vpnrouter.plan.mesh_file import PlannedRouter
from vpnrouter.plan.risks import Risk, RouterState, effect_name, risks_of
from vpnrouter.settings.schema import Effect

Place = tuple[str, str]
"""A message VPN, and the name of an object of it."""


@dataclass(frozen=True, slots=True)
class RouterPlan:
    """What would change at one router. Rows of `changes` have `path`, `text` and `effect`.

    `steps` lead there from the document with `digest`. `restart` tells of differences that hold only from
    the router's next start: they are not applied. `unnamed` are message VPNs that stay as they are because
    the mesh file says nothing of them. `bridges` and `connectors` are those that have to be up afterwards.
    """

    name: str
    digest: str
    changes: tuple[Row, ...]
    restart: tuple[str, ...]
    risks: tuple[Risk, ...]
    problems: tuple[str, ...]
    unnamed: tuple[str, ...]
    steps: tuple[Step, ...]
    bridges: tuple[Place, ...]
    connectors: tuple[Place, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether the router is what the file says."""
        return not self.changes and not self.restart

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain data for JSON."""
        return {
            "router": self.name,
            "digest": self.digest,
            "changes": [dict(change) for change in self.changes],
            "needsRestart": list(self.restart),
            "risks": [{"kind": risk.kind, "text": risk.text} for risk in self.risks],
            "problems": list(self.problems),
            "unnamedMsgVpns": list(self.unnamed),
            "steps": [step.name for step in self.steps],
        }


_ROUTER: Final = "router"


def compare(planned: PlannedRouter, api: ManagementClient, *, prune: bool) -> RouterPlan:
    """Return what `planned` would change at the router that `api` leads to; nothing changes.

    Raises OperationError where it does not answer, refuses, or is another router.
    """
    answer = api.config()
    if answer["routerName"] != planned.name:
        raise OperationError(
            f"what answers for router {planned.name} at {planned.entry.url} is router {answer['routerName']}"
        )
    current: Plain = answer["document"]
    full = wanted(current, _with_name(planned.document, current), prune=prune)
    left_to_router: list[str] = []
    restart: list[str] = []
    examined = api.examine(full)
    for change in examined["changes"]:
        if change["effect"] == effect_name(Effect.RESTART):
            restart.append(str(change["text"]))
            left_to_router.append(str(change["path"][0]))
    goal = full
    if left_to_router:
        goal = wanted(
            current, _with_name(planned.document, current), prune=prune, kept=left_to_router
        )
        examined = api.examine(goal)
    problems = _errors(examined)
    router_state = RouterState(api.msg_vpns(), api.bridges(), api.queues(), api.connectors())
    way = [] if problems else steps(current, goal)
    for step in way[:-1]:
        problems += [
            f"on the way there ({step.name}): {text}"
            for text in _errors(api.examine(step.document))
        ]
    return RouterPlan(
        name=planned.name,
        digest=str(answer["digest"]),
        changes=tuple(examined["changes"]),
        restart=tuple(restart),
        risks=tuple(risks_of(examined["changes"], router_state)),
        problems=tuple(problems),
        unnamed=() if prune else tuple(unnamed(current, planned.document)),
        steps=tuple(way),
        bridges=tuple(_to_be_up(planned, router_state)),
        connectors=tuple(_connectors_to_be_up(planned, router_state)),
    )


def _errors(examined: Row) -> list[str]:
    return [
        f"{each['file']}:{each['line']}:{each['column']}: {each['message']}"
        for each in examined["problems"]
        if each["severity"] == "error"
    ]


def _with_name(planned: Plain, current: Plain) -> Plain:
    """Return the document without `router` where that has nothing but the name."""
    block = planned.get(_ROUTER)
    if block is None:
        return planned
    return {**planned, _ROUTER: {**(current.get(_ROUTER) or {}), **block}}


def _to_be_up(planned: PlannedRouter, current: RouterState) -> list[Place]:
    """Return the enabled bridges that are up now or do not exist yet: one that is down already proves nothing."""
    existing = {(row["msgVpnName"], row["bridgeName"]) for row in current.bridges}
    bridges = []
    for vpn_name, vpn in planned.loaded.config.msg_vpns.items():
        for name, bridge in vpn.bridges.items():
            if not (vpn.enabled and bridge.enabled and bridge.remote_msg_vpns):
                continue
            if (vpn_name, name) not in existing or current.is_up(vpn_name, name):
                bridges.append((vpn_name, name))
    return bridges


def _connectors_to_be_up(planned: PlannedRouter, current: RouterState) -> list[Place]:
    """Return the enabled connectors that are up now or do not exist yet."""
    existing = {(row["msgVpnName"], row["connectorName"]) for row in current.connectors}
    return [
        (vpn_name, name)
        for vpn_name, vpn in planned.loaded.config.msg_vpns.items()
        for name, connector in vpn.connectors.items()
        if vpn.enabled
        and connector.enabled
        and ((vpn_name, name) not in existing or current.connector_is_up(vpn_name, name))
    ]


def compare_all(
    routers: Sequence[PlannedRouter], apis: Mapping[str, ManagementClient], *, prune: bool
) -> list[RouterPlan]:
    """Return the plans of all routers of a mesh file, in its order."""
    return [compare(planned, apis[planned.name], prune=prune) for planned in routers]
