"""Consumers come to an endpoint, and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core import client_events
from vpnrouter.core.barrier import SPOOL
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.dispatch import next_active
from vpnrouter.core.guaranteed.flow import FAILED, RELEASED
from vpnrouter.core.guaranteed.kinds import QUEUE, TOPIC_ENDPOINT
from vpnrouter.core.guaranteed.permissions import may_learn
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.flow import Flow

NOT_AUTHORIZED: Final = 0x87
NOT_FOUND: Final = 0x8F
QUOTA_EXCEEDED: Final = 0x97
UNAVAILABLE: Final = 0x83
"""MQTT 5 reason codes: implementation specific error for what is shut down."""


def not_there(kind: int, username: ClientUsername | None) -> Refused:
    """The refusal of a consumer that `username` wants at an endpoint that is not there."""
    unknown = reasons.UNKNOWN_QUEUE if kind == QUEUE else reasons.UNKNOWN_TOPIC_ENDPOINT
    if may_learn(username):
        return Refused(unknown, NOT_FOUND)
    return Refused(reasons.PERMISSION_DENIED, NOT_AUTHORIZED, unknown)


def permit(endpoint: Endpoint, permission: int, needed: int) -> None:
    """Refuse who may not have what he wants, before anything else is said of the endpoint."""
    if permission < needed:
        endpoint.counters.bind_request_count += 1
        _refuse(endpoint, reasons.PERMISSION_DENIED, NOT_AUTHORIZED)


def bind(endpoint: Endpoint, flow: Flow, permission: int, needed: int) -> None:
    """Let a consumer in; see Endpoint.bind."""
    counters = endpoint.counters
    counters.bind_request_count += 1
    terms = endpoint.terms
    vpn = endpoint.vpn
    queue = endpoint.kind == QUEUE
    if endpoint.deleted:
        _refuse(
            endpoint,
            reasons.UNKNOWN_QUEUE if queue else reasons.UNKNOWN_TOPIC_ENDPOINT,
            NOT_FOUND,
        )
    if permission < needed:
        _refuse(endpoint, reasons.PERMISSION_DENIED, NOT_AUTHORIZED)
    if not terms.egress_enabled:
        _refuse(endpoint, endpoint.shutdown_reason(), UNAVAILABLE)
    if flow in endpoint.flows:
        _refuse(endpoint, reasons.ALREADY_BOUND, NOT_AUTHORIZED)
    if len(endpoint.flows) >= terms.max_bind_count:
        _refuse(
            endpoint, reasons.QUEUE_BINDS if queue else reasons.TOPIC_ENDPOINT_BINDS, QUOTA_EXCEEDED
        )
    if flow.selector is not None and endpoint.partitions is not None:
        _refuse(endpoint, reasons.INVALID_SELECTOR, NOT_AUTHORIZED)
    if endpoint.kind in (QUEUE, TOPIC_ENDPOINT):
        most = vpn.limits.max_egress_flow_count
        if most and vpn.egress_flows >= most:
            _refuse(endpoint, reasons.TOO_MANY_FLOWS, QUOTA_EXCEEDED)
        vpn.egress_flows += 1
    counters.bind_success_count += 1
    endpoint.flows.append(flow)
    _changed(endpoint)
    if not terms.exclusive:
        flow.active = True
    client_events.bound(endpoint, flow, bind=True)


def unbind(endpoint: Endpoint, flow: Flow, *, counts: bool) -> None:
    """Unbind a consumer, as Endpoint.unbind says. A second call goes on behind the step that raised."""
    bound = flow in endpoint.flows
    if bound:
        endpoint.flows.remove(flow)
        if endpoint.kind in (QUEUE, TOPIC_ENDPOINT):
            endpoint.vpn.egress_flows -= 1
        flow.active = False
    try:
        flow.letting_go()
    finally:
        try:
            _give_back(endpoint, flow, FAILED if counts else RELEASED)
        finally:
            _changed(endpoint)
    if bound:
        client_events.bound(endpoint, flow, bind=False)


def _give_back(endpoint: Endpoint, flow: Flow, outcome: int) -> None:
    barrier = endpoint.vpn.plane.barrier
    for message_id in list(flow.unacked):
        try:
            endpoint.settle(flow, message_id, outcome)
        except Exception as error:  # noqa: BLE001 - given to the barrier: the others go back as well
            barrier.caught(error, SPOOL, endpoint.name, endpoint.vpn.name, "goes on")


def unbind_all(endpoint: Endpoint, reason: str) -> None:
    """Unbind all consumers, and tell them why. What they hold comes back, and does not count as a redelivery."""
    for flow in list(endpoint.flows):
        unbind(endpoint, flow, counts=False)
        flow.unbound(reason)


def unbind_forbidden(endpoint: Endpoint) -> None:
    """Unbind consumers that are not permitted any more. What they hold comes back; that is no redelivery."""
    for flow in list(endpoint.flows):
        if not flow.permitted():
            unbind(endpoint, flow, counts=False)
            flow.unbound(reasons.PERMISSION_DENIED)


def _changed(endpoint: Endpoint) -> None:
    selective = [flow for flow in endpoint.flows if flow.selector is not None]
    endpoint.selective = bool(selective)
    if endpoint.terms.exclusive:
        next_active(endpoint)
    elif endpoint.partitions is not None:
        endpoint.partitions.changed()
    endpoint.wake()


def _refuse(endpoint: Endpoint, reason: str, code: int) -> None:
    failures = endpoint.counters.bind_failures
    failures[reason] = failures.get(reason, 0) + 1
    raise Refused(reason, code)
