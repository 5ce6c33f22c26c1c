"""Defines the client of an AMQP connection: who publishes, binds and subscribes, and with which rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.access import alike
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.login import report_rights
from vpnrouter.core.publisher import Publisher
from vpnrouter.core.subscriber import FRAME_OWN, Subscriber
from vpnrouter.core.tracing import assign
from vpnrouter.topics.cache import RememberedTopics

if TYPE_CHECKING:
    from vpnrouter.core.access import BoundRule, ProviderClient
    from vpnrouter.core.amqp.connection import AmqpConnection
    from vpnrouter.core.amqp.sending_link import SendingLink
    from vpnrouter.core.client_connection import ClientConnection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.login import Admission
    from vpnrouter.core.memory_account import MemoryAccount
    from vpnrouter.core.profile import ClientProfile
    from vpnrouter.core.subscriber import Subscription
    from vpnrouter.core.vpn import MessageVpn


NUMBERED: Final = 100
"""Names of connections of one container that have small numbers; others have long ones."""


@final
class AmqpClient(Subscriber):
    """The client of one connection, in `vpn.clients` under its name as long as that lasts.

    `container` is its container id; the name is the same, with a number where another client has it. Containers are
    told apart by client username: durable subscriptions belong to both together (promise OWNER), temporary ones and
    publishing to the connection. `sole`: it wants no other connection of its container. `subscriber_count` counts its
    links that subscribe to topics, `ingress_flows` those that have published guaranteed messages, `egress_flows` those
    that consume from endpoints. `publisher` stays when the connection has ended, for the links that are still there.
    """

    __slots__ = (
        "_leaving",
        "_may_have",
        "connection",
        "container",
        "egress_flows",
        "ingress_flows",
        "publish_rule",
        "publisher",
        "receives",
        "sends",
        "sole",
        "subscriber_count",
        "vpn",
    )

    def __init__(
        self, connection: AmqpConnection, admission: Admission, container: str, sole: bool
    ) -> None:
        vpn = admission.vpn
        super().__init__(_free_name(vpn, container), connection.outbox, FRAME_OWN)
        self.vpn: MessageVpn = vpn
        self.connection = connection
        self.container = container
        self.sole = sole
        self._leaving = False
        # Topics that `rule` was asked about.
        self._may_have: RememberedTopics[bool] = RememberedTopics(limits.PERMITTED_TOPIC_BYTES)
        self.subscriber_count = 0
        self.ingress_flows = 0
        self.egress_flows = 0
        self.publish_rule: BoundRule | None = None
        self.publisher: Publisher | None = None
        self.sends = True
        self.receives = True
        self._take(admission)
        vpn.clients[self.client_name] = self
        self._enter(admission.username.name)

    def _enter(self, username: str) -> None:
        # No-local means all connections of the container, and nobody else's of this name.
        self.local_name = local_name(self.vpn, username, self.container)
        fellows = self.vpn.containers.setdefault((username, self.container), {})
        fellows[self] = None

    @property
    def provided(self) -> ProviderClient | None:
        """The connector whose provider the client belongs to, None for nearly all clients."""
        return self.vpn.provider_clients.get(self.container)

    def no_local(self, wished: bool) -> bool:
        """Return whether a subscription leaves out what no-local means by the client's name."""
        return wished or self.provided is not None

    def client_connection(self) -> ClientConnection | None:
        """The client's connection."""
        return self.connection

    @property
    def profile(self) -> ClientProfile:
        """The client profile of the client username."""
        admission = self.connection.admission
        if admission is None:
            raise AssertionError(self.client_name)
        return admission.profile

    @property
    def username(self) -> str:
        """The client username."""
        admission = self.connection.admission
        return "" if admission is None else admission.username.name

    @property
    def spool(self) -> Spool | None:
        """The message spool, None where guaranteed messaging is off."""
        return spool_of(self.vpn.context)

    def username_memory(self) -> MemoryAccount:
        """The account of the client username."""
        most = self.profile.max_memory_bytes_per_client_username
        return self.vpn.memory.of(self.username, most)

    def publish(self, admission: Admission) -> Publisher:
        """Make the publisher of the connection, as the present rights allow, and count the connection."""
        vpn = self.vpn
        context = vpn.context
        publisher = Publisher(vpn, self, self.publish_rule, 0, vpn.limits.max_msg_size)
        publisher.username = admission.username
        self.publisher = publisher
        provided = self.provided
        if provided is not None and provided.incoming:
            # Each message is looked at: none is forwarded together with others.
            publisher.elsewhere = provided.incoming
            publisher.max_frame = 0
        if context.filters:
            assign(context, publisher, admission.username.name)
        if context.discard_rows is not None:
            self.outbox.losses = context.discard_rows.of(vpn.name, self)
        vpn.occupy(admission.username.name)
        vpn.publishers[self.client_name] = publisher
        return publisher

    def end(self) -> None:
        """Take the client out of its message VPN: its connection has ended. A second call does nothing."""
        vpn = self.vpn
        name = self.client_name
        connection = self.connection
        publisher = connection.publisher
        if vpn.clients.get(name) is self:
            del vpn.clients[name]
        key = (self.username, self.container)
        fellows = vpn.containers.get(key, {})
        fellows.pop(self, None)
        if not fellows:
            vpn.containers.pop(key, None)
        if publisher is None:
            return
        if vpn.publishers.get(name) is publisher:
            del vpn.publishers[name]
        # First: a second call must not change the counts below again.
        connection.publisher = None
        vpn.release(self.username)
        vpn.absorb(publisher)

    @property
    def predecessors(self) -> int:
        """Ended connections of the container that have not let go of all their links."""
        return self.vpn.leaving.get((self.username, self.container), 0)

    def leaves(self) -> None:
        """Note that the connection has ended, and lets go of its links in later turns."""
        if not self._leaving:
            self._leaving = True
            self.vpn.leaving[self.username, self.container] = self.predecessors + 1

    def has_left(self) -> None:
        """Note that all links have gone. A second call does nothing."""
        # It refers to the client: the two would wait for a garbage collection.
        self.publisher = None
        if self._leaving:
            self._leaving = False
            left = self.predecessors - 1
            if left:
                self.vpn.leaving[self.username, self.container] = left
            else:
                del self.vpn.leaving[self.username, self.container]

    def give_way(self) -> bool:
        """Take another name: an MQTT client comes whose client id the name is, and it can have no other."""
        vpn = self.vpn
        before = self.client_name
        after = _free_name(vpn, self.container)
        publisher = self.connection.publisher
        self.client_name = after
        vpn.clients[after] = self
        del vpn.clients[before]
        if publisher is not None and vpn.publishers.get(before) is publisher:
            vpn.publishers[after] = publisher
            del vpn.publishers[before]
        for link in self.sending_links():
            link.renamed(after)
        return True

    # -- rights ----------------------------------------------------------------------------------

    def may_have(self, topic: bytes) -> bool:
        """Return whether the client may be sent what is published to a topic."""
        rule = self.rule
        if rule is None:
            return True
        found = self._may_have.answers.get(topic)
        if found is None:
            found = rule.allows_topic(topic.decode())
            self._may_have.keep(topic, found)
        return found

    def _take(self, rights: Admission) -> list[str]:
        """Apply rights; the names of what has changed."""
        changed: list[str] = []
        self._may_have.clear()
        name = rights.username.name
        rule = self.vpn.subscribe_rule(rights.acl, name, self.container)
        if not alike(rule, self.rule):
            changed.append("subscribe_topic")
        self.rule = rule
        rule = rights.acl.publish.bound(name, self.container)
        if not alike(rule, self.publish_rule):
            changed.append("publish_topic")
        self.publish_rule = rule
        profile = rights.profile
        if self.sends != profile.allow_guaranteed_msg_send_enabled:
            self.sends = profile.allow_guaranteed_msg_send_enabled
            changed.append("allow_guaranteed_msg_send_enabled")
        if self.receives != profile.allow_guaranteed_msg_receive_enabled:
            self.receives = profile.allow_guaranteed_msg_receive_enabled
            changed.append("allow_guaranteed_msg_receive_enabled")
        return changed

    def judge_again(self, rights: Admission, *, told: bool) -> bool:
        """Apply changed rights to the client, its publisher and its links; True when something has changed."""
        changed = self._take(rights)
        publisher = self.connection.publisher
        if publisher is not None:
            publisher.rule = self.publish_rule
            publisher.username = rights.username
            publisher.permitted.clear()
        for link in self.sending_links():
            link.judge()
        if changed and told:
            report_rights(self.vpn, self.client_name, rights, changed)
        return bool(changed)

    def sending_links(self) -> list[SendingLink]:
        """The links over which the client is sent messages."""
        found: list[SendingLink] = []
        for session in self.connection.sessions.values():
            found += session.sending_links()
        return found

    def held(self) -> dict[str, Subscription]:
        """The subscriptions of its links for Direct messages, by topic filter; endpoints have the others."""
        found: dict[str, Subscription] = {}
        for link in self.sending_links():
            if link.subscriber is not None:
                found.update(link.subscriber.subscriptions)
        return found

    def subscribed_endpoints(self) -> list[Endpoint]:
        """The endpoints of the subscriptions that its links consume from."""
        return [
            link.consumer.endpoint
            for link in self.sending_links()
            if link.consumer is not None and link.consumer.subscription is not None
        ]

    def may_share(self, share: str) -> bool:
        """Return whether client profile and ACL profile let the client share a subscription of this name."""
        admission = self.connection.admission
        return admission is not None and admission.may_share(share, self.container)


def local_name(vpn: MessageVpn, username: str, container: str) -> str:
    """Return the name by which no-local knows the clients of a container: that of the connector whose provider they
    belong to, else one that no other client has.
    """
    provided = vpn.provider_clients.get(container)
    return f"{username}\0{container}" if provided is None else provided.local_name


def _free_name(vpn: MessageVpn, container: str) -> str:
    """The container's id, or with the first free number behind it."""
    if container not in vpn.clients:
        return container
    for number in range(2, NUMBERED):
        name = f"{container}:{number}"
        if name not in vpn.clients:
            return name
    name = container
    while name in vpn.clients:
        name = f"{container}:{vpn.context.ids.next() & 0xFFFF_FFFF:x}"
    return name
