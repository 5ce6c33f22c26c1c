"""Lists what needs an operator, the worst first.

Pure: rules over the rows of one router's API and the growth of its counters.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from vpnrouter.core import discard_reasons
from vpnrouter.limits import TUI_TROUBLES
from vpnrouter.management.answers.rows import Row
from vpnrouter.text import counted, in_number
from vpnrouter.tui import format as fmt
from vpnrouter.tui.router_state import DEAD_LETTERS, UNWANTED, RouterState, losses_of
from vpnrouter.units import DAY_S, MEGABYTE

RANKS: Final = (
    *("DOWN", "FAULT", "LOST", "REFUSED", "STOPPED", "EXPIRED", "UNBOUND", "HELD", "STALLED"),
    *("REFUSING", "FULL", "LOSING", "EXPIRES", "INCOMPLETE", "BACKS UP", "NO READER"),
    *("parked", "paused", "disabled"),
)
"""Words of trouble, the worst first: what carries nothing or loses guaranteed messages; what is about to; what waits
for somebody who may come; what somebody has wanted so."""

KINDS: Final = ("router", "msgVpn", "bridge", "connector", "queue")
"""Kinds of what has trouble, the first one first among those of one word: there are fewer of them."""

URGENT: Final = RANKS.index("STALLED")
"""The last rank that cannot wait."""

WARNINGS: Final = RANKS.index("NO READER")
"""The last rank that is no mere information."""

LOSSES: Final = frozenset(
    {
        discard_reasons.TRANSMIT_CONGESTION,
        discard_reasons.CLIENT_NOT_CONNECTED,
        discard_reasons.MSG_TOO_BIG,
        discard_reasons.TTL_EXCEEDED,
        discard_reasons.PUBLISH_TOPIC_ACL,
        discard_reasons.TOPIC_PARSE_ERROR,
        discard_reasons.PARSE_ERROR,
        discard_reasons.REFUSED,
    }
)
"""Reasons of discards by which a receiver misses a message. A message without a subscriber, or one in a loop, is no
loss."""

STILL_MS: Final = 10_000
"""Milliseconds without progress from which something that has messages to pass on stalls."""

FULL: Final = 0.8
"""Share of a queue's quota from which it is shown."""


class Problem(NamedTuple):
    """One line: `word` is one of RANKS, `kind` one of KINDS."""

    word: str
    kind: str
    msg_vpn: str
    name: str
    why: str

    @property
    def rank(self) -> int:
        """Place in the list of what can be wrong, 0 for the worst."""
        return RANKS.index(self.word)

    @property
    def place(self) -> tuple[int, int, str, str, str]:
        """What the list of trouble is sorted by."""
        return (self.rank, KINDS.index(self.kind), self.msg_vpn, self.name, self.why)

    @property
    def is_urgent(self) -> bool:
        """Whether it cannot wait."""
        return self.rank <= URGENT

    @property
    def style(self) -> str:
        """How it is drawn."""
        if self.rank > WARNINGS:
            return "note"
        return "bad" if self.is_urgent else "warn"


def problems_of(store: RouterState, wall_s: float = 0.0) -> list[Problem]:
    """The trouble of one router at `wall_s` since 1970, the worst first."""
    found = list(_of_certificates(store, wall_s))
    found += [
        trouble
        for rows, rule in (
            (store.msg_vpns, _of_msg_vpn),
            (store.bridges, _of_bridge),
            (store.connectors, _of_connector),
            (store.queues, _of_queue),
        )
        for row in rows
        for trouble in rule(store, row)
    ]
    return sorted(found, key=lambda one: one.place)[:TUI_TROUBLES]


EXPIRES_DAYS: Final = 14
"""Days before a certificate expires from which it is shown: time to have another one made."""


def _of_certificates(store: RouterState, wall_s: float) -> Iterator[Problem]:
    for listener, until in store.certificates.items():
        left = until - wall_s
        if left <= 0:
            word, how = "EXPIRED", f"expired {fmt.duration(-left)} ago"
        elif left <= EXPIRES_DAYS * DAY_S:
            word, how = "EXPIRES", f"expires in {fmt.duration(left)}"
        else:
            continue
        why = f"the certificate {how}, at {fmt.moment(until)}"
        yield Problem(word, "router", "", listener, why)


def why_down(row: Row) -> str:
    """Why a bridge does not work: the first reason that a half or a remote reports."""
    reasons = [row["inboundFailureReason"], row["outboundFailureReason"]]
    reasons += [each["lastConnectionFailureReason"] for each in row.get("remotes", ())]
    reason = next((each for each in reasons if each), "")
    state = f"inbound {row['inboundState']}"
    if row["outboundState"] != "not-applicable":
        state += f", outbound {row['outboundState']}"
    return reason or state


class Amount(NamedTuple):
    """What a queue holds of something, and of how much: `10 of 10 messages`; `used` is the share, 0 without a bound."""

    text: str
    used: float

    @property
    def told(self) -> str:
        """The text, with the share in per cent if there is one."""
        return f"{self.text} ({self.used:.0%})" if self.used else self.text


def amounts(row: Row) -> tuple[Amount, Amount]:
    """The messages of a queue and their bytes, each with its quota."""
    count, size = row["msgCount"], row["msgSpoolUsage"]
    most, megabytes = row["maxSpooledMsgCount"], row["maxMsgSpoolUsage"]
    of_count = f" of {most:,}" if most else ""
    of_size = f" of {megabytes:,} MB" if megabytes else ""
    return (
        Amount(
            f"{count:,}{of_count} {in_number(most or count, 'message')}",
            count / most if most else 0.0,
        ),
        Amount(f"{fmt.size(size)}{of_size}", size / (megabytes * MEGABYTE) if megabytes else 0.0),
    )


def fullest(row: Row) -> Amount:
    """The amount of a queue that is nearest to its quota."""
    return max(amounts(row), key=lambda each: each.used)


def _of_msg_vpn(store: RouterState, row: Row) -> Iterator[Problem]:
    name = row["msgVpnName"]
    if not row["enabled"]:
        yield Problem("disabled", "msgVpn", name, "", "disabled in the configuration")
    elif row["state"] != "up":
        yield Problem("DOWN", "msgVpn", name, "", f"state {row['state']}")
    losing = {
        reason: store.meters.rate(("vpn", name, "discarded", reason))
        for reason in row.get("discarded", {})
        if reason in LOSSES
    }
    if total := sum(losing.values()):
        worst = max(losing, key=lambda reason: losing[reason])
        yield Problem("LOSING", "msgVpn", name, "", f"{fmt.rate(total)}/s: {worst}")


def _of_bridge(store: RouterState, row: Row) -> Iterator[Problem]:
    vpn, name = row["msgVpnName"], row["bridgeName"]

    def problem(word: str, why: str) -> Problem:
        return Problem(word, "bridge", vpn, name, why)

    if row["health"] == "down":
        yield problem("DOWN", f"{fmt.age(row['stateAgeMs'])}: {why_down(row)}")
        return
    if row["health"] == "disabled":
        yield problem("disabled", "disabled by an operator or in the configuration")
        return
    if row["health"] == "msg-vpn-disabled":
        yield problem("disabled", f"message VPN {vpn} is disabled")
        return
    if row["health"] == "paused":
        yield problem("paused", "paused: guaranteed messages wait at the remote")
    if row["health"] == "stalled":
        held = f"guaranteed messages are held, Direct ones cross: {row['inboundFailureReason']}"
        yield problem("STALLED", f"{fmt.age(row['stateAgeMs'])}: {held}")
    if row["remoteSubscriptionRefusedCount"]:
        why = row["inboundFailureReason"] or "a remote subscription was refused"
        yield problem("INCOMPLETE", why)
    for way, words in (("rx", "from"), ("tx", "to")):
        waiting, idle = row[f"{way}InFlightMsgCount"], row[f"last{way.capitalize()}AgeMs"]
        meant = row["health"] == "stalled" or (way == "rx" and row["health"] == "paused")
        if waiting and idle >= STILL_MS and not meant:
            what = in_number(waiting, "message")
            wait = in_number(waiting, "waits", "wait")
            why = f"{fmt.figure(waiting)} {what} {words} the remote {wait} since {fmt.age(idle)}"
            yield problem("STALLED", why)
        if row[f"{way}Imbalance"]:
            why = f"{counted(row[f'{way}Imbalance'], 'message')} not accounted for ({way})"
            yield problem("FAULT", why)
    for remote in row.get("remotes", ()):
        if remote["up"] and remote["queueBinding"] and not remote["boundToQueue"]:
            why = remote["lastQueueBindFailureReason"] or "no answer yet"
            yield problem("UNBOUND", f"queue {remote['queueBinding']}: {why}")
    if row["parkedMsgCount"]:
        yield problem("parked", f"{counted(row['parkedMsgCount'], 'message')} set aside")
    if lost := store.meters.rate(("bridge", vpn, name, UNWANTED)):
        yield problem("LOST", f"{fmt.rate(lost)}/s guaranteed: no queue here takes them")
    losing = {
        reason: store.meters.rate(("bridge", vpn, name, way, reason))
        for way in ("Rx", "Tx")
        for reason in row[f"discarded{way}"]
        if reason in LOSSES
    }
    if total := sum(losing.values()):
        worst = max(losing, key=lambda reason: losing[reason])
        yield problem("LOSING", f"{fmt.rate(total)}/s: {worst}")


def is_down(row: Row) -> bool:
    """Whether a connector has failed, and is not up again; its first attempt may be under way."""
    return row["state"] == "stopped" or (
        row["state"] not in {"up", "disabled"} and row["failure"] != ""
    )


LINK_WORDS: Final = {
    "refused": "REFUSED",
    "stopped": "STOPPED",
    "held": "HELD",
}
"""Words of states in which a link carries nothing, or less than it should."""


def _of_connector(store: RouterState, row: Row) -> Iterator[Problem]:
    vpn, name = row["msgVpnName"], row["connectorName"]

    def problem(word: str, why: str) -> Problem:
        return Problem(word, "connector", vpn, name, why)

    if row["state"] == "disabled":
        yield problem("disabled", "the connector or its message VPN is disabled")
        return
    if is_down(row):
        yield problem("DOWN", f"{row['state']}: {row['failure']}")
    if row["state"] == "paused":
        yield problem("paused", f"paused: {counted(row['waitingMsgCount'], 'message')} waiting")
    for link in row["links"]:
        which = f"link {link['linkName']}"
        if link["state"] == "paused" and row["state"] != "paused":
            waiting = counted(link["waitingMsgCount"], "message")
            yield problem("paused", f"{which} is paused: {waiting} waiting")
        if found := LINK_WORDS.get(link["state"]):
            since = fmt.duration(link["stateSince"])
            yield problem(found, f"{which} {since}: {link['stateReason']}")
        guaranteed = link.get("qualityOfService", "") != "at-most-once"
        losing = {
            reason: store.meters.rate(("connector", vpn, name, "link", link["linkName"], reason))
            for reason in losses_of(link)
            if reason in LOSSES
            or reason == DEAD_LETTERS
            or (guaranteed and reason == discard_reasons.NO_SUBSCRIPTION_MATCH)
        }
        if total := sum(losing.values()):
            worst = max(losing, key=lambda reason: losing[reason])
            kept = not guaranteed or total == losing[DEAD_LETTERS]
            why = f"{which}: {fmt.rate(total)}/s: {worst}"
            yield problem("LOSING" if kept else "LOST", why)
        if link["parkedMsgCount"]:
            yield problem("parked", f"{which}: {counted(link['parkedMsgCount'], 'message')}")


def _of_queue(store: RouterState, row: Row) -> Iterator[Problem]:
    vpn, name, count = row["msgVpnName"], row["queueName"], row["msgCount"]

    def problem(word: str, why: str) -> Problem:
        return Problem(word, "queue", vpn, name, why)

    into = store.meters.rate(("queue", vpn, name, "in"))
    out = store.meters.rate(("queue", vpn, name, "out"))
    waiting = f"{fmt.figure(count)} {in_number(count, 'message')}"
    if row["imbalance"]:
        yield problem("FAULT", f"{counted(row['imbalance'], 'message')} not accounted for")
    for word, what in (("LOST", "discarded"), ("REFUSING", "refused")):
        if lost := store.meters.rate(("queue", vpn, name, what)):
            reasons = row[what]
            worst = max(reasons, key=lambda reason: reasons[reason], default="")
            yield problem(word, f"{fmt.rate(lost)}/s: {worst}")
    if (most := fullest(row)).used >= FULL:
        yield problem("FULL", most.told)
    if not count or row["endpointType"] == "parking-lot":
        return
    age = fmt.age(row["oldestMsgAgeMs"])
    if not row["egressEnabled"]:
        yield problem("STALLED", f"{waiting}, egress is off, oldest {age}")
    elif not row["bindCount"]:
        # That the client of a session is away is what the session is for.
        if row["endpointType"] != "session":
            yield problem("NO READER", f"{waiting} and no consumer, oldest {age}")
    elif not out and row["oldestMsgAgeMs"] >= STILL_MS:
        held = f"{fmt.figure(row['txUnackedMsgCount'])} unacknowledged"
        yield problem("STALLED", f"{waiting}, {held}, oldest {age}")
    elif into > out:
        why = f"{waiting}, +{fmt.rate(into - out)}/s, oldest {age}"
        yield problem("BACKS UP", why)
