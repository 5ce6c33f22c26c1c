"""Reads from running routers what no file has: configurations in force, clients, queues and bridges that are down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from pydantic import ValidationError

from vpnrouter import limits
from vpnrouter.bridges.bridge import UP, Inbound
from vpnrouter.config.configured_bridge import scheme_of
from vpnrouter.config.document_values import mask
from vpnrouter.config.parse import Document, Node
from vpnrouter.config.router import Loaded, RouterConfig
from vpnrouter.config.secrets import ENVIRONMENT
from vpnrouter.connectors.link_state import LinkState
from vpnrouter.connectors.machine import PAUSED, State
from vpnrouter.core.amqp.subscriptions import add_endpoint, holder_in, judge
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONNECTOR_LINK,
    KIND_NAMES,
    QUEUE,
    SUBSCRIPTION,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.login import rights_of
from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX
from vpnrouter.core.subscriber import Subscription
from vpnrouter.errors import OperationError, SelectorError, TopicError
from vpnrouter.explain.observed import Observed, SeenConnector
from vpnrouter.explain.request import Subscriber
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vpnrouter.explain.mesh import MemoryMesh
    from vpnrouter.management.answers.rows import Row
    from vpnrouter.management.client import ManagementClient


_ATTRACTING: Final = {KIND_NAMES[kind]: kind for kind in (TOPIC_ENDPOINT, SUBSCRIPTION)}
"""Kinds of endpoints that attract what clients ask for, not what the configuration says, by their names in the API."""

CLIENT_CERTIFICATE: Final = "client-certificate"
"""The authentication scheme of a bridge that shows a certificate."""

_TROUBLED: Final = frozenset(
    {LinkState.HELD, LinkState.PAUSED, LinkState.REFUSED, LinkState.STOPPED}
)
"""States of a connector's link of which the answer says why."""

_BRIDGES: Final = "clientName==#bridge/*"


@final
class Live:
    """The state of some routers. `mesh` are their configurations in force, secrets left out; `subscribers` the
    clients with subscriptions, `observed` what the mesh in memory has to be told.
    """

    def __init__(self) -> None:
        self.mesh: list[Loaded] = []
        self.subscribers: list[Subscriber] = []
        self.observed = Observed()
        self.notes: list[str] = []
        self._queues: list[tuple[str, Row]] = []
        self._attracting: list[tuple[str, Row]] = []

    def ask(self, client: ManagementClient) -> None:
        """Add what one router reports. Raises OperationError."""
        configured = client.config()
        loaded = loaded_of(configured)
        self.mesh.append(loaded)
        router = loaded.config.router.name
        self.observed.routers.add(router)
        # Listed by the router itself: what `explain` is asked about are the others.
        for row in client.queues():
            self._queues.append((router, row))
        for row in client.bridges():
            state = str(row.get("inboundState", ""))
            why = str(row.get("inboundFailureReason", "")) or state
            place = (router, str(row["msgVpnName"]), str(row["bridgeName"]))
            if state == Inbound.STALLED:
                self.observed.stalled[place] = why
                self.notes.append(
                    f"bridge {place[2]} into {router}/{place[1]} is stalled now: {why}; its guaranteed"
                    " messages wait at the remote, Direct ones cross"
                )
            elif state == Inbound.PAUSED:
                self.notes.append(
                    f"bridge {place[2]} into {router}/{place[1]} is paused now: guaranteed messages wait at the"
                    " remote, Direct ones do not cross"
                )
            elif state and state not in UP:
                self.observed.down[place] = why
        for row in client.connectors():
            self._connector(router, row)
        self._clients(router, client)

    def _connector(self, router: str, row: Row) -> None:
        state = str(row.get("state", ""))
        place = (router, str(row["msgVpnName"]), str(row["connectorName"]))
        links = {
            str(link["linkName"]): (str(link.get("state", "")), str(link.get("stateReason", "")))
            for link in row.get("links", ())
        }
        why = (
            "" if state in (State.UP, State.IDLE, PAUSED) else str(row.get("failure", "")) or state
        )
        if any(str(link.get("connectionState", "")) == State.UP for link in row.get("links", ())):
            # Those links that have connections of their own, and are down, say so.
            why = ""
        self.observed.connectors[place] = SeenConnector(
            str(row.get("provider", "")), str(row.get("protocol", "")), why, links
        )
        for link, (stands, reason) in links.items():
            if stands in _TROUBLED:
                why = f": {reason}" if reason else ""
                self.notes.append(
                    f"link {link} of connector {place[2]} of {router}/{place[1]} is {stands} now{why}"
                )

    def ask_names(self, client: ManagementClient) -> None:
        """Add as whom the bridges of other routers are logged in at one router. Raises OperationError."""
        router = str(client.config()["routerName"])
        for row in client.clients(where=_BRIDGES):
            place = (router, str(row["msgVpnName"]), str(row["clientName"]))
            self.observed.usernames[place] = str(row.get("clientUsername", ""))

    @property
    def shows_certificates(self) -> bool:
        """Whether a bridge of these routers logs in by a certificate."""
        return any(
            scheme_of(bridge, remote) == CLIENT_CERTIFICATE
            for loaded in self.mesh
            for vpn in loaded.config.msg_vpns.values()
            for bridge in vpn.bridges.values()
            for remote in bridge.remote_msg_vpns
        )

    def _clients(self, router: str, client: ManagementClient) -> None:
        room = limits.EXPLAIN_SUBSCRIPTIONS - sum(
            len(subscriber.filters) for subscriber in self.subscribers
        )
        rows = client.subscriptions(limit=room + 1)
        filters_by_client: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for count, row in enumerate(rows):
            if count >= room:
                self.notes.append(
                    f"router {router} has more than {room:,} subscriptions; the rest is left out"
                )
                break
            place = (str(row["msgVpnName"]), str(row["name"]))
            if row["holder"] in _ATTRACTING:
                self._attracting.append((router, row))
            elif row["holder"] == "client":
                filters_by_client.setdefault(place, []).append(
                    (str(row["subscriptionTopic"]), int(row.get("qos", 0)))
                )
        if not filters_by_client:
            return
        known = {(str(row["msgVpnName"]), str(row["clientName"])): row for row in client.clients()}
        for (msg_vpn, name), filters in filters_by_client.items():
            row = known.get((msg_vpn, name), {})
            self.subscribers.append(
                Subscriber(
                    router,
                    msg_vpn,
                    tuple(filters),
                    name,
                    str(row.get("clientUsername", "")),
                    connected=bool(row.get("connected", True)),
                )
            )

    def enter(self, memory_mesh: MemoryMesh) -> list[str]:
        """Bring the queues, topic endpoints and AMQP subscriptions of the mesh in memory to where the real ones are;
        what is to be said of it.
        """
        for router, row in self._queues:
            self._fill(memory_mesh, router, row)
        for router, row in self._attracting:
            self._subscribe(memory_mesh, router, row)
        return list(self.notes)

    @staticmethod
    def _fill(memory_mesh: MemoryMesh, router: str, row: Row) -> None:
        node = memory_mesh.nodes.get(router)
        vpn = None if node is None else node.router.vpns.get(str(row["msgVpnName"]))
        if node is None or vpn is None or node.spool is None:
            return
        name = str(row["queueName"])
        endpoint = endpoints_of(vpn).get((QUEUE, name))
        if name.startswith(CONNECTOR_PREFIX):
            endpoint = endpoints_of(vpn).get((CONNECTOR_LINK, name.removeprefix(CONNECTOR_PREFIX)))
            if endpoint is not None and not endpoint.subscriptions:
                # What a link has set aside says its state.
                return
        if endpoint is None:
            return
        size, count = int(row.get("msgSpoolUsage", 0)), int(row.get("msgCount", 0))
        endpoint.spooled_bytes += size
        endpoint.spooled_count += count
        vpn.spooled_bytes += size
        node.spool.usage += size

    @staticmethod
    def _subscribe(memory_mesh: MemoryMesh, router: str, row: Row) -> None:
        node = memory_mesh.nodes.get(router)
        vpn = None if node is None else node.router.vpns.get(str(row["msgVpnName"]))
        if node is None or vpn is None or node.spool is None:
            return
        kind, name = _ATTRACTING[str(row["holder"])], str(row["name"])
        endpoint = endpoints_of(vpn).get((kind, name))
        if endpoint is None:
            if kind == TOPIC_ENDPOINT:
                return
            number = node.spool.number()
            endpoint = add_endpoint(node.spool, vpn, name, number, False, False, holder_in(name))
        dialect = MQTT if row.get("syntax") == "mqtt" else SMF
        try:
            filter_ = parse_filter(str(row["subscriptionTopic"]), dialect)
            selector = parse_selector(str(row["selector"])) if row.get("selector") else None
        except (TopicError, SelectorError):
            return
        vpn.subscribe(Subscription(filter_, endpoint, selector=selector))
        if kind == SUBSCRIPTION and rights_of(vpn, endpoint.attracts_for[0]) is not None:
            judge(endpoint)


def live_mesh(clients: Sequence[ManagementClient]) -> Live:
    """Return what these routers report; its `mesh` is for `explain`. Raises OperationError."""
    live = Live()
    for client in clients:
        live.ask(client)
    if live.shows_certificates:
        for client in clients:
            live.ask_names(client)
    return live


def loaded_of(configured: Row) -> Loaded:
    """Return the configuration in an answer of `/vpnrouter/v1/config`. Raises OperationError where it is none."""
    document = configured.get("document")
    file = str(configured.get("file") or configured.get("routerName") or "router")
    try:
        # A secret that is a variable or a file of the router's machine is not here, and nothing here stands for it.
        readable = mask(document, references=True)
        config = RouterConfig.model_validate(readable, context={ENVIRONMENT: {}})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise _unreadable(configured, f"{where}: {first['msg']}") from error
    except ValueError as error:
        raise _unreadable(configured, str(error)) from error
    return Loaded(config, document_of(document, configured.get("positions") or (), file), ())


def _unreadable(configured: Row, why: str) -> OperationError:
    return OperationError(
        f"the configuration of router {configured.get('routerName')} cannot be read here: {why}; is it of another"
        " version?"
    )


def document_of(data: Any, positions: Iterable[Row], file: str) -> Document:  # noqa: ANN401 - plain data
    """Return a document with the positions in `positions`: rows of path, file, line and column."""
    places = {
        tuple(row["path"]): (str(row["file"]), int(row["line"]), int(row["column"]))
        for row in positions
    }
    return Document(file, _node(data, (), places, (file, 1, 1)))


def _node(
    value: Any,  # noqa: ANN401 - plain data
    path: tuple[str | int, ...],
    places: dict[tuple[str | int, ...], tuple[str, int, int]],
    above: tuple[str, int, int],
) -> Node:
    """Return the tree of a value; a part without a row has the position of the part that it is in."""
    file, line, column = places.get(path, above)
    node = Node(file, line, column, value)
    steps: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        steps = value.items()
    elif isinstance(value, list):
        steps = enumerate(value)
    for step, below in steps:
        inner = _node(below, (*path, step), places, (file, line, column))
        node.children[step] = (inner, inner)
        node.size += inner.size
    return node
