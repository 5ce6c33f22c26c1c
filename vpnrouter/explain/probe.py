"""Send one message through the mesh in memory, as a client would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.errors import Refused
from vpnrouter.explain.access_rules import profile_rule, publish_rule, username_rule
from vpnrouter.explain.question import PERSISTENT, UsageError
from vpnrouter.explain.rules import attribute
from vpnrouter.explain.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vpnrouter.core.login import ClientUsername
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.explain.event import Event
    from vpnrouter.explain.explanation import Rule
    from vpnrouter.explain.node import Node
    from vpnrouter.explain.question import Question, Subscriber
    from vpnrouter.explain.twin import Twin

CLIENT: Final = "explain"


@final
class Probe:
    """A client that publishes the message of `question`; `events` are what became of it.

    `refused` says why the router did not even look at the message, "" where it did. Raises UsageError for a
    client username that is not there, or where nobody may log in.
    """

    def __init__(self, twin: Twin, question: Question) -> None:
        self._twin = twin
        self._question = question
        self._node = twin.nodes[question.router]
        vpn = self._node.router.vpns[question.msg_vpn]
        self.client_username = question.client_username or _somebody(
            self._node, vpn, question.topic
        )
        self.events: list[Event] = []
        self.session = Session(
            self._node,
            question.msg_vpn,
            _free_name(vpn, CLIENT),
            self.client_username,
            question.client_address,
        )
        self.username = _identify(vpn, self.client_username)
        if self.username is None:
            raise UsageError(
                f"message VPN {question.msg_vpn} of router {question.router} has no client username"
                f" {self.client_username or 'for clients without one'}"
            )

    @property
    def refused(self) -> str:
        """See the class."""
        session = self.session
        if session.refused:
            return f"login refused: {session.refused}"
        return session.answer if session.answer.startswith("disconnected") else ""

    def send(self, topic: bytes) -> None:
        """Log in and publish, and let the mesh come to rest."""
        twin, session, question = self._twin, self.session, self._question
        twin.sessions.append(session)
        twin.settle()
        twin.take_events()
        if session.refused:
            return
        qos = 1 if question.mode == PERSISTENT else 0
        session.publish(topic, bytes(question.size), qos, list(question.properties))
        twin.settle()
        twin.wait(limits.EXPLAIN_WAIT_MS)
        events = twin.take_events()
        self.events = events[: limits.EXPLAIN_EVENTS]

    def rules(self) -> list[Rule]:
        """What decides whether the client may publish the message."""
        loaded, username = self._node.loaded, self.username
        vpn = self._question.msg_vpn
        if username is None:
            return []
        rules = [username_rule(loaded, vpn, username)]
        if self.session.refused:
            if not self._node.router.vpns[vpn].enabled:
                return [attribute(loaded, ("msg_vpns", vpn, "enabled"))]
            profile = ("msg_vpns", vpn, "acl_profiles", username.acl_profile, "client_connect")
            return [*rules, attribute(loaded, (*profile, "default_action"))]
        rules.append(
            publish_rule(loaded, vpn, username, self.session.client_id, self._question.topic)
        )
        if self._question.mode == PERSISTENT:
            if self._node.spool is None:
                rules.append(attribute(loaded, ("guaranteed_msging", "enabled")))
            else:
                key = "allow_guaranteed_msg_send_enabled"
                rules.append(profile_rule(loaded, vpn, username, key))
        return rules


def hypothetical(twin: Twin, subscribers: Sequence[Subscriber]) -> list[str]:
    """Log these clients in and let them subscribe; what is to be said of it.

    Raises UsageError for one at a place that is not in the mesh.
    """
    notes: list[str] = []
    for number, wanted in enumerate(subscribers[: limits.EXPLAIN_SUBSCRIPTIONS], start=1):
        node = twin.nodes.get(wanted.router)
        vpn = None if node is None else node.router.vpns.get(wanted.msg_vpn)
        if node is None or vpn is None:
            raise UsageError(f"the mesh has no message VPN {wanted.router}/{wanted.msg_vpn}")
        name = _free_name(vpn, wanted.name or f"subscriber-{number}")
        username = wanted.client_username or _somebody(node, vpn, "")
        session = Session(node, wanted.msg_vpn, name, username, lasting=not wanted.connected)
        twin.sessions.append(session)
        twin.settle()
        if session.refused:
            notes.append(
                f"client {name} cannot log in to {wanted.router}/{wanted.msg_vpn}: {session.refused}"
            )
            continue
        session.subscribe(list(wanted.filters))
        notes += _settled(twin, session)
        if not wanted.connected:
            session.leave()
    return notes


def _settled(twin: Twin, session: Session) -> Iterable[str]:
    twin.settle()
    for text, why in session.denied.items():
        yield f"client {session.client_id} may not subscribe to {text}: {why}"


def _free_name(vpn: MessageVpn, name: str) -> str:
    free = name
    number = 1
    while free in vpn.clients:
        number += 1
        free = f"{name}-{number}"
    return free


def _identify(vpn: MessageVpn, name: str) -> ClientUsername | None:
    """The client username that a login with `name` comes to; None where it is not known."""
    known = vpn.credentials.usernames.get(name)
    if known is not None:
        return known
    try:
        return vpn.credentials.identify(name or None)
    except Refused:
        return None


def _somebody(node: Node, vpn: MessageVpn, topic: str) -> str:
    """A client username that may publish `topic`, else one that may log in; "" where everybody may.

    Raises UsageError where nobody can log in.
    """
    credentials = vpn.credentials
    if not credentials.basic_enabled and credentials.client_cert is None:
        return ""
    names = [
        one
        for one in credentials.usernames.values()
        if one.enabled and (one.password is not None or credentials.client_cert is not None)
    ]
    if not names:
        raise UsageError(
            f"nobody can log in to message VPN {node.name}/{vpn.name}: it has no client username with a"
            " password"
        )
    for one in names:
        # A bridge's account may do what no client should be shown to do.
        if vpn.profiles[one.client_profile].allow_bridge_connections_enabled and len(names) > 1:
            continue
        if not topic or _may(vpn, one, topic):
            return one.name
    return next((one.name for one in names if topic and _may(vpn, one, topic)), names[0].name)


def _may(vpn: MessageVpn, username: ClientUsername, topic: str) -> bool:
    rule = vpn.acl_profiles[username.acl_profile].publish
    return rule.bind(username.name, CLIENT).allows_topic(topic)
