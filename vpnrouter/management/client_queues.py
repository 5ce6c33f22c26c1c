"""What a client of the management API asks about the messages of a queue, and has done to them."""

from collections.abc import Sequence

from vpnrouter import limits
from vpnrouter.management.attributes import Row
from vpnrouter.management.client_transport import Transport
from vpnrouter.management.envelope import segment


class QueueCalls(Transport):
    """Messages, consumers and replay of queues, and the spool that holds them."""

    def msgs(self, msg_vpn: str, queue: str, count: int, after: int = 0) -> list[Row]:
        """At most `count` messages of a queue with ids above `after`, by rising id."""
        path = f"/SEMP/v2/monitor{queue_path(msg_vpn, queue)}/msgs"
        return list(self.rows(path, wanted=count, cursor=str(after) if after else ""))

    def tx_flows(self, msg_vpn: str, queue: str) -> list[Row]:
        """The consumers that are bound to a queue."""
        return list(self.rows(f"/SEMP/v2/monitor{queue_path(msg_vpn, queue)}/txFlows"))

    def payload(self, msg_vpn: str, queue: str, msg_id: int) -> bytes:
        """The payload of one message."""
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
        """Begin the counts of a queue anew."""
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
    """A queue's path behind the root of an API."""
    return f"/msgVpns/{segment(msg_vpn)}/queues/{segment(queue)}"
