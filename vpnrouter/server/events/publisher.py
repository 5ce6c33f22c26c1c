"""Publishes events as Direct messages in the message VPN that they are about, on the field's topics.

    #LOG/LEVEL/VPN/ROUTER/EVENT/VPN               $SYS/LOG/… the same for MQTT
    #LOG/LEVEL/CLIENT/ROUTER/EVENT/VPN/CLIENT
    #LOG/INFO/SUB_ADD/FILTER                      SUB_DEL when it goes; format v1
    #LOG/INFO/SUB/ROUTER/ADD/VPN/CLIENT/FILTER    DEL when it goes; format v2

They are published after whatever raised them is done, and publishing raises none: no event feeds itself. They are
published in slices, for many may wait, and the selectors of their receivers may be much work.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from typing_extensions import override

from vpnrouter import limits
from vpnrouter.core.message import Message
from vpnrouter.core.selection import Evaluation, at_hand, used
from vpnrouter.core.timers import Job
from vpnrouter.events.table import TOPIC_NAMES
from vpnrouter.text import printable
from vpnrouter.topics.grammar import EVENT_PREFIX, to_smf

if TYPE_CHECKING:
    from collections.abc import Callable

    from vpnrouter.config.msg_vpn import MsgVpn
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.core.route import Route
    from vpnrouter.core.router import Router
    from vpnrouter.core.subscriber import Subscription
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.events.log import Event
    from vpnrouter.settings.event import TopicFormat


SMF_PREFIX: Final = "#LOG/"

V1: Final = "format-v1"
QUIET_END: Final = "no-unsubscribe-events-on-disconnect"


@final
class EventPublisher(Job):
    """Listens to an EventLog. `config` gives the configuration in force."""

    def __init__(self, router: Router, config: Callable[[], RouterConfig]) -> None:
        super().__init__()
        self.config = config
        self.lost = 0
        self._router = router
        self._waiting: deque[tuple[str, str, str]] = deque()
        # Of the event that is being published: its messages, and the answers for the first of them.
        self._messages: deque[tuple[MessageVpn, Message]] = deque()
        self._route: Route | None = None
        self._evaluation: Evaluation | None = None

    def __call__(self, event: Event) -> None:
        """Publish an event soon, if its message VPN wants it."""
        configured = self.config().msg_vpns.get(event.msg_vpn)
        if configured is None:
            return
        scope = event.kind.scope
        publish = configured.event.publish
        if not (
            publish.client_enabled
            if scope == "CLIENT"
            else publish.msg_vpn_enabled and scope == "VPN"
        ):
            return
        kind = event.kind
        place = f"{TOPIC_NAMES[kind.level]}/{scope}/{self._router.name}/{kind.name}/{event.msg_vpn}"
        topic = f"{place}/{event.name}" if scope == "CLIENT" else place
        about = f"{event.msg_vpn} {event.name}" if scope == "CLIENT" else event.msg_vpn
        self._add(event.msg_vpn, topic, f"{scope}: {kind.name}: {about} {event.text}")

    def watch(self) -> None:
        """Hear of the subscriptions of the message VPNs that publish them; about once a second."""
        configured = self.config().msg_vpns
        for name, vpn in self._router.vpns.items():
            mode = configured[name].event.publish.subscription_mode if name in configured else "off"
            if mode == "off":
                vpn.on_subscription = None
            elif vpn.on_subscription is None:
                vpn.on_subscription = _Watch(self, vpn)

    def subscription(self, vpn: MessageVpn, subscription: Subscription, *, comes: bool) -> None:
        """Publish that a subscription was added or removed, where the message VPN is configured for it."""
        found = self.config().msg_vpns.get(vpn.name)
        mode = "off" if found is None else found.event.publish.subscription_mode
        subscriber = subscription.subscriber
        if mode == "off" or (not comes and QUIET_END in mode and not subscriber.connected):
            return
        name = printable(subscriber.client_name, limits.EVENT_NAME_CHARS)
        # In the one dialect whose wildcards may stand in a published topic.
        written_so = to_smf(subscription.filter) or [subscription.filter.original]
        text = printable(written_so[-1], limits.EVENT_TEXT_CHARS)
        if mode.endswith(V1):
            topic = f"INFO/SUB_{'ADD' if comes else 'DEL'}/{text}"
        else:
            verb = "ADD" if comes else "DEL"
            topic = f"INFO/SUB/{self._router.name}/{verb}/{vpn.name}/{name}/{text}"
        what = "SUBSCRIPTION_ADD" if comes else "SUBSCRIPTION_DELETE"
        self._add(vpn.name, topic, f"{self._router.name} {vpn.name} {name} {what} {text}")

    @override
    def step(self) -> bool:
        """Publish what waits, until this turn has done enough."""
        context = self._router.context
        while self._messages or self._waiting:
            if context.turn_spent:
                return False
            if not self._messages:
                self._begin(*self._waiting.popleft())
            elif not self._publish():
                return False
        return True

    def _begin(self, name: str, topic: str, text: str) -> None:
        """Make the messages of an event, one in each form."""
        vpn = self._router.vpns.get(name)
        configured = self.config().msg_vpns.get(name)
        if vpn is None or configured is None or not vpn.enabled:
            return
        payload = _tagged(configured, text).encode()
        for form in _topics(configured.event.publish.topic_format, topic):
            self._messages.append((vpn, Message(form.encode(), payload, b"")))

    def _publish(self) -> bool:
        """Publish the first message; False where its selectors are not evaluated in this turn."""
        vpn, message = self._messages[0]
        route = self._route or vpn.announcement(message)
        self._route = route
        evaluation = self._evaluation
        if route is not None and route.selector_cost:
            if evaluation is None:
                evaluation = self._evaluation = Evaluation(vpn.context, route, message)
            if not evaluation.go_on():
                return False
        self._messages.popleft()
        self._route = self._evaluation = None
        vpn.context.work += 1
        if evaluation is not None:
            at_hand(message, evaluation.answers)
        try:
            # The route is made anew: its receivers may have gone meanwhile.
            vpn.announce(message)
        finally:
            used(message)
        return True

    def _add(self, msg_vpn: str, topic: str, text: str) -> None:
        if len(self._waiting) >= limits.EVENTS_TO_PUBLISH:
            self.lost += 1
            return
        self._waiting.append((msg_vpn, topic, text))
        self._router.context.jobs.add(self)


@final
class _Watch:
    """The callback of a message VPN for each added or removed subscription."""

    def __init__(self, publisher: EventPublisher, vpn: MessageVpn) -> None:
        self._publisher = publisher
        self._vpn = vpn

    def __call__(self, subscription: Subscription, comes: bool) -> None:
        self._publisher.subscription(self._vpn, subscription, comes=comes)


def _topics(form: TopicFormat, topic: str) -> list[str]:
    found = []
    if form.mqtt_enabled:
        # What must not stand in a topic that an MQTT client is sent (MQTT-3.3.2-2).
        found.append(EVENT_PREFIX + topic.replace("+", "%2B").replace("#", "%23"))
    if form.smf_enabled:
        found.append(SMF_PREFIX + topic)
    return found


def _tagged(configured: MsgVpn, text: str) -> str:
    tag = printable(configured.event.log_tag, limits.EVENT_NAME_CHARS)
    return f"{tag} {text}" if tag else text
