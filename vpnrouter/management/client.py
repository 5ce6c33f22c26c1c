"""A client of the management API, for commands, screens and plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, final

from vpnrouter import limits
from vpnrouter.management.answers.rows import Row, segment
from vpnrouter.management.client_transport import PATIENCE_S, Page, Transport

OURS: Final = "/vpnrouter/v1/config"

CONFIG: Final = "/SEMP/v2/config"


class ConfigCalls(Transport):
    """The configuration as a document, and its objects one by one.

    A path of an object is given behind `/SEMP/v2/config`, as `config_path` makes it.
    """

    def config(self) -> Row:
        """Return the document in force and where it is written: `document` (secrets as `***`), `digest`,
        `routerName`, `file`, `overlayFile`, `overlay`, `positions`.
        """
        return dict(self.get(OURS)["data"])

    def examine(self, document: Row) -> Row:
        """Return what a change to `document` would do: `problems`, `changes`, `digest`."""
        return dict(self.post(f"{OURS}/examine", {"document": document})["data"])

    def replace_config(self, document: Row, expected: str) -> Row:
        """Put `document` into force where `expected` is the digest in force: `lines`, `digest`."""
        body = {"document": document, "expected": expected}
        return dict(self.put(f"{OURS}/replace", body)["data"])

    def return_config(self, digest: str) -> Row:
        """Put the document with this digest, one of the last ones, into force again: `lines`, `digest`."""
        return dict(self.put(f"{OURS}/return", {"digest": digest})["data"])

    def config_object(self, path: str) -> Row:
        """Return one object of the configuration, without its secrets."""
        return dict(self.get(CONFIG + path)["data"])

    def config_objects(self, path: str) -> list[Row]:
        """Return the objects of one collection."""
        return list(self.rows(CONFIG + path))

    def patch_config(self, path: str, body: Row) -> Row:
        """Change some attributes of an object; returns the object."""
        return dict(self.patch(CONFIG + path, body)["data"])

    def create_config(self, path: str, body: Row) -> Row:
        """Create an object in a collection; returns the object."""
        return dict(self.post(CONFIG + path, body)["data"])

    def delete_config(self, path: str) -> None:
        """Delete an object."""
        self.delete(CONFIG + path)


def config_path(*parts: str | tuple[str, ...]) -> str:
    """Return `/msgVpns/blue/bridges/from-edge,auto` of `"msgVpns", "blue", "bridges", ("from-edge", "auto")`."""
    return "".join(f"/{segment(*((part,) if isinstance(part, str) else part))}" for part in parts)


class QueueCalls(Transport):
    """Messages, consumers and replay of queues, and the spool that holds them."""

    def msgs(self, msg_vpn: str, queue: str, count: int, after: int = 0) -> list[Row]:
        """Return at most `count` messages of a queue with ids above `after`, by rising id."""
        path = f"/SEMP/v2/monitor{queue_path(msg_vpn, queue)}/msgs"
        return list(self.rows(path, limit=count, cursor=str(after) if after else ""))

    def tx_flows(self, msg_vpn: str, queue: str) -> list[Row]:
        """Return the consumers that are bound to a queue."""
        return list(self.rows(f"/SEMP/v2/monitor{queue_path(msg_vpn, queue)}/txFlows"))

    def payload(self, msg_vpn: str, queue: str, msg_id: int) -> bytes:
        """Return the payload of one message."""
        return self.content(f"/vpnrouter/v1{queue_path(msg_vpn, queue)}/msgs/{msg_id}/payload")

    def delete_msgs(self, msg_vpn: str, queue: str, msg_ids: Sequence[int] | None = None) -> int:
        """Delete these messages, or all that no consumer holds; returns how many that were."""
        path = f"/SEMP/v2/action{queue_path(msg_vpn, queue)}/deleteMsgs"
        return self._for_all(path, {}, msg_ids)

    def put_msgs(
        self, msg_vpn: str, queue: str, to: str, msg_ids: Sequence[int] | None, *, move: bool
    ) -> int:
        """Put these messages, or all that no consumer holds, into another queue; returns how many."""
        verb = "moveMsgs" if move else "copyMsgs"
        path = f"/vpnrouter/v1{queue_path(msg_vpn, queue)}/{verb}"
        return self._for_all(path, {"toQueueName": to}, msg_ids)

    def start_replay(
        self, msg_vpn: str, queue: str, log: str = "", from_time: int = 0, after_id: int = 0
    ) -> None:
        """Replay to a queue: from a time (seconds since 1970), behind a message, or from the beginning."""
        body: Row = {"replayLogName": log} if log else {}
        if from_time:
            body["fromTime"] = from_time
        if after_id:
            body["afterMsgId"] = after_id
        self.put(f"/SEMP/v2/action{queue_path(msg_vpn, queue)}/startReplay", body)

    def cancel_replay(self, msg_vpn: str, queue: str) -> None:
        """End the replay to a queue."""
        self.put(f"/SEMP/v2/action{queue_path(msg_vpn, queue)}/cancelReplay", {})

    def clear_queue_stats(self, msg_vpn: str, queue: str) -> None:
        """Reset the counts of a queue."""
        self.put(f"/SEMP/v2/action{queue_path(msg_vpn, queue)}/clearStats", {})

    def back_up(self, directory: str) -> None:
        """Have the spool copied to `directory`, an absolute path on the router's machine."""
        self.put("/vpnrouter/v1/spool/backup", {"directory": directory})

    def _for_all(self, path: str, body: Row, msg_ids: Sequence[int] | None) -> int:
        """Ask for messages by their ids, as many at a time as a request may name."""
        if msg_ids is None:
            return int(self.put(path, body)["data"]["msgCount"])
        most = limits.MANAGEMENT_MSG_IDS
        ids = sorted(set(msg_ids))
        parts = [ids[begin : begin + most] for begin in range(0, len(ids), most)]
        return sum(
            int(self.put(path, body | {"msgIds": part})["data"]["msgCount"]) for part in parts
        )


def queue_path(msg_vpn: str, queue: str) -> str:
    """Return a queue's path behind the root of an API."""
    return f"/msgVpns/{segment(msg_vpn)}/queues/{segment(queue)}"


__all__ = ["PATIENCE_S", "ManagementClient", "Page", "Traces", "Transport"]

MONITOR: Final = "/SEMP/v2/monitor"

ACTION: Final = "/SEMP/v2/action"

ALL_CLIENTS: Final = "/vpnrouter/v1/clients"
ALL_SUBSCRIPTIONS: Final = "/vpnrouter/v1/subscriptions"
EVENTS: Final = "/vpnrouter/v1/events"
ROUTER: Final = "/vpnrouter/v1/router"
TRACES: Final = "/vpnrouter/v1/traces"

VIRTUAL_ROUTER: Final = "auto"


class Traces(NamedTuple):
    """Rows of traces, and the mark to ask for what follows them. `missed` were too many to be shown;
    `tracing` is False where the router traces nothing.
    """

    rows: list[Row]
    mark: int
    missed: int = 0
    tracing: bool = True


@final
class ManagementClient(QueueCalls, ConfigCalls):
    """Calls the management API of one router; Transport takes its address and login.

    Rows have the attributes of the status classes in camelCase. An iterator requests its pages as it
    is consumed, so that a large collection is never held as a whole; `limit` is how many rows at
    most, `where` as in docs/management.md.
    """

    def router(self) -> Row:
        """Return the router: `routerName`, `version`, `ready`; and the caller: `user`, `role`, `allMsgVpns`."""
        return dict(self.get(ROUTER)["data"])

    def msg_vpns(self, *, where: str = "") -> list[Row]:
        """Return all message VPNs that the user sees, in order of name."""
        return list(self.rows(f"{MONITOR}/msgVpns", where=where))

    def msg_vpn(self, msg_vpn: str) -> Row:
        """Return one message VPN."""
        return dict(self.get(f"{MONITOR}/msgVpns/{segment(msg_vpn)}")["data"])

    def bridges(self, msg_vpn: str = "") -> list[Row]:
        """Return all bridges with their `remotes`, in order of message VPN and name, or those of one VPN."""
        return self.objects("bridges", msg_vpn)

    def bridge(self, msg_vpn: str, bridge: str) -> Row:
        """Return one bridge, with its `remotes`."""
        path = MONITOR + _bridge(msg_vpn, bridge)
        row = dict(self.get(path)["data"])
        row["remotes"] = list(self.rows(f"{path}/remoteMsgVpns"))
        return row

    def connectors(self, msg_vpn: str = "") -> list[Row]:
        """Return all connectors with their `links`, in order of message VPN and name, or those of one VPN."""
        return self.objects("connectors", msg_vpn)

    def queues(self, msg_vpn: str = "") -> list[Row]:
        """Return all queues, in order of message VPN and name, or those of one VPN."""
        return self.objects("queues", msg_vpn)

    def queue(self, msg_vpn: str, queue: str) -> Row:
        """Return one queue."""
        return dict(self.get(MONITOR + queue_path(msg_vpn, queue))["data"])

    def clients(
        self, msg_vpn: str = "", *, limit: int | None = None, where: str = "", select: str = ""
    ) -> Iterator[Row]:
        """Return clients of all message VPNs or of one, in order of message VPN and name."""
        path = f"{MONITOR}/msgVpns/{segment(msg_vpn)}/clients" if msg_vpn else ALL_CLIENTS
        return self.rows(path, limit=limit, where=where, select=select)

    def client_page(self, msg_vpn: str = "", *, cursor: str = "", where: str = "") -> Page:
        """Return one page of `clients`, with how many there are in all."""
        path = f"{MONITOR}/msgVpns/{segment(msg_vpn)}/clients" if msg_vpn else ALL_CLIENTS
        return self.page(path, cursor=cursor, where=where)

    def client(self, msg_vpn: str, client: str) -> Row:
        """Return one client."""
        return dict(self.get(MONITOR + _client(msg_vpn, client))["data"])

    def client_subscriptions(self, msg_vpn: str, client: str) -> Iterator[Row]:
        """Return the subscriptions of one client."""
        return self.rows(f"{MONITOR}{_client(msg_vpn, client)}/subscriptions")

    def subscriptions(
        self, msg_vpn: str = "", *, limit: int | None = None, where: str = ""
    ) -> Iterator[Row]:
        """Return subscriptions of all message VPNs or of one, whoever holds them."""
        if msg_vpn:
            # What is asked for must exist: a misspelt name is not an empty answer.
            self.msg_vpn(msg_vpn)
            path = f"/vpnrouter/v1/msgVpns/{segment(msg_vpn)}/subscriptions"
            return self.rows(path, limit=limit, where=where)
        return self.rows(ALL_SUBSCRIPTIONS, limit=limit, where=where)

    def matches(self, msg_vpn: str, topic: str) -> list[Row]:
        """Return the subscriptions that a topic reaches now, by the route that a message would take."""
        path = f"/vpnrouter/v1/msgVpns/{segment(msg_vpn)}/matches"
        return list(self.rows(path, topic=topic))

    def children(self, msg_vpn: str, collection: str, *, where: str = "") -> Iterator[Row]:
        """Return objects of a message VPN: `mqttSessions`, `topicEndpoints`, `clientUsernames`,
        `clientProfiles` or `aclProfiles`.
        """
        return self.rows(f"{MONITOR}/msgVpns/{segment(msg_vpn)}/{collection}", where=where)

    def events(self, count: int, after: int | None = None, msg_vpn: str = "") -> list[Row]:
        """Return at most `count` events by rising id, and at most EVENTS_PAGE: those with ids above `after`, or
        the newest ones.
        """
        query = {"count": str(min(count, limits.EVENTS_PAGE))}
        if after is not None:
            query["after"] = str(after)
        if msg_vpn:
            query["msgVpnName"] = msg_vpn
        return list(self.get(EVENTS, query)["data"])

    def traces(
        self,
        count: int,
        mark: int = 0,
        *,
        topic: str = "",
        event: str = "",
        msg_vpn: str = "",
        trace_id: str = "",
    ) -> Traces:
        """Return traces that went by behind `mark` (0: from now on) and meet the filters that are given."""
        query = {"count": str(count), "after": str(mark)}
        filters = {"topic": topic, "event": event, "msgVpnName": msg_vpn, "traceId": trace_id}
        query |= {name: value for name, value in filters.items() if value}
        answer = self.get(TRACES, query)
        meta = answer["meta"]
        missed, tracing = int(meta.get("missed", 0)), bool(meta.get("tracing", True))
        return Traces(list(answer["data"]), int(meta["mark"]), missed, tracing)

    def disconnect_client(self, msg_vpn: str, client: str) -> None:
        """End the connection of a client."""
        self.put(f"{ACTION}{_client(msg_vpn, client)}/disconnect", {})

    def clear_client_stats(self, msg_vpn: str, client: str) -> None:
        """Reset the counts of a client."""
        self.put(f"{ACTION}{_client(msg_vpn, client)}/clearStats", {})

    def act(self, action: str, *place: str | tuple[str, ...]) -> None:
        """Do what the kind of an object declares: `act("pause", "msgVpns", "blue", "connectors", "there")`."""
        self.put(f"/vpnrouter/v1{config_path(*place)}/{action}", {})

    def disconnect_bridge(self, msg_vpn: str, bridge: str) -> None:
        """End the connection of a bridge; one that is enabled connects again."""
        self.put(f"{ACTION}{_bridge(msg_vpn, bridge)}/disconnect", {})

    def clear_bridge_stats(self, msg_vpn: str, bridge: str) -> None:
        """Reset the counts of a bridge."""
        self.put(f"{ACTION}{_bridge(msg_vpn, bridge)}/clearStats", {})

    def objects(self, collection: str, msg_vpn: str = "") -> list[Row]:
        """Return all objects of a kind, in order of message VPN and name, or those of one VPN."""
        if msg_vpn:
            # What is asked for must exist: a misspelt name is not an empty answer.
            self.msg_vpn(msg_vpn)
        rows = self.rows(f"/vpnrouter/v1/{collection}")
        return [row for row in rows if msg_vpn in {"", row["msgVpnName"]}]


def _bridge(msg_vpn: str, bridge: str) -> str:
    return f"/msgVpns/{segment(msg_vpn)}/bridges/{segment(bridge, VIRTUAL_ROUTER)}"


def _client(msg_vpn: str, client: str) -> str:
    return f"/msgVpns/{segment(msg_vpn)}/clients/{segment(client)}"
