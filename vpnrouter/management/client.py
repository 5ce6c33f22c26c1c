"""A client of the management API, for commands."""

import ssl
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, Self, final
from urllib.parse import unquote

import httpx

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.management.attributes import Row
from vpnrouter.management.envelope import segment

PATIENCE_S: Final = 10.0
"""Seconds to connect, and to wait for each answer."""

ACTION_PATIENCE_S: Final = 600.0
"""Seconds to wait for something to be done: a queue may hold millions of messages."""

ALL_BRIDGES: Final = "/vpnrouter/v1/bridges"
ALL_QUEUES: Final = "/vpnrouter/v1/queues"


@final
class ManagementClient:
    """Asks one router. `ca_file` is a PEM file of authorities, "" for those of this system.

    Raises ValueError for a `url` that is none of http or https. All methods raise OperationError, in
    one line with the way out, when there is no answer or the answer is no.
    """

    def __init__(self, url: str, user: str = "", password: str = "", *, ca_file: str = "") -> None:
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL:
            parsed = httpx.URL("")
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise ValueError(f"{url} is not of the form http://HOST:PORT or https://HOST:PORT")
        self._url = url.rstrip("/")
        self._user = user
        self._http = httpx.Client(
            auth=(user, password) if user else None,
            timeout=PATIENCE_S,
            verify=_authorities(ca_file) if parsed.scheme == "https" else True,
            # A proxy of the environment is for other hosts than this one.
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def bridges(self, msg_vpn: str = "") -> list[Row]:
        """All bridges with their `remotes`, in order of message VPN and name, or those of one VPN."""
        return self._of_vpn(ALL_BRIDGES, msg_vpn)

    def queues(self, msg_vpn: str = "") -> list[Row]:
        """All queues, in order of message VPN and name, or those of one VPN."""
        return self._of_vpn(ALL_QUEUES, msg_vpn)

    def msgs(self, msg_vpn: str, queue: str, count: int, after: int = 0) -> list[Row]:
        """At most `count` messages of a queue with ids above `after`, by rising id."""
        path = f"/SEMP/v2/monitor{_queue(msg_vpn, queue)}/msgs"
        return list(islice(self._rows(path, str(after) if after else "", count), count))

    def payload(self, msg_vpn: str, queue: str, msg_id: int) -> bytes:
        """The payload of one message."""
        path = f"/vpnrouter/v1{_queue(msg_vpn, queue)}/msgs/{msg_id}/payload"
        response = self._send("GET", path)
        if response.status_code == 200:
            return response.content
        self._read(response)
        raise OperationError(f"{self._url}: no payload in the answer")

    def delete_msgs(self, msg_vpn: str, queue: str, msg_ids: Sequence[int] | None = None) -> int:
        """Delete these messages, or all that no consumer holds; returns how many that were."""
        path = f"/SEMP/v2/action{_queue(msg_vpn, queue)}/deleteMsgs"
        return self._for_all(path, {}, msg_ids)

    def put_msgs(
        self, msg_vpn: str, queue: str, to: str, msg_ids: Sequence[int] | None, *, move: bool
    ) -> int:
        """Put these messages, or all that no consumer holds, into another queue; returns how many."""
        verb = "moveMsgs" if move else "copyMsgs"
        path = f"/vpnrouter/v1{_queue(msg_vpn, queue)}/{verb}"
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
        self._put(f"/SEMP/v2/action{_queue(msg_vpn, queue)}/startReplay", body)

    def cancel_replay(self, msg_vpn: str, queue: str) -> None:
        """End the replay to a queue."""
        self._put(f"/SEMP/v2/action{_queue(msg_vpn, queue)}/cancelReplay", {})

    def back_up(self, directory: str) -> None:
        """Have the spool copied to `directory`, an absolute path on the router's machine."""
        self._put("/vpnrouter/v1/spool/backup", {"directory": directory})

    def _for_all(self, path: str, body: Row, msg_ids: Sequence[int] | None) -> int:
        """Ask for messages by their ids, as many at a time as a request may name."""
        if msg_ids is None:
            return int(self._put(path, body)["data"]["msgCount"])
        most = limits.MANAGEMENT_MSG_IDS
        ids = sorted(set(msg_ids))
        parts = [ids[begin : begin + most] for begin in range(0, len(ids), most)]
        return sum(
            int(self._put(path, body | {"msgIds": part})["data"]["msgCount"]) for part in parts
        )

    def _of_vpn(self, path: str, msg_vpn: str) -> list[Row]:
        if msg_vpn:
            # What is asked for must exist: a misspelt name is not an empty answer.
            self._get(f"/SEMP/v2/monitor/msgVpns/{segment(msg_vpn)}", {})
        return [row for row in self._rows(path) if msg_vpn in {"", row["msgVpnName"]}]

    def _rows(
        self, path: str, cursor: str = "", wanted: int = limits.MANAGEMENT_PAGE_ROWS
    ) -> Iterator[Row]:
        query = {"count": str(min(wanted, limits.MANAGEMENT_PAGE_ROWS))}
        if cursor:
            query["cursor"] = cursor
        while True:
            answer = self._get(path, query)
            yield from answer["data"]
            paging = answer["meta"].get("paging")
            if paging is None:
                return
            query["cursor"] = unquote(paging["cursorQuery"])

    def _get(self, path: str, query: dict[str, str]) -> Row:
        return self._read(self._send("GET", path, query=query))

    def _put(self, path: str, body: Row) -> Row:
        return self._read(self._send("PUT", path, body=body, patience_s=ACTION_PATIENCE_S))

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Row | None = None,
        patience_s: float = PATIENCE_S,
    ) -> httpx.Response:
        patience = httpx.Timeout(patience_s, connect=PATIENCE_S)
        try:
            return self._http.request(
                method, self._url + path, params=query, json=body, timeout=patience
            )
        except httpx.TimeoutException:
            raise OperationError(
                f"no answer from {self._url} within {patience_s:.0f} s; try again"
            ) from None
        except httpx.TransportError as error:
            raise OperationError(
                f"cannot connect to {self._url}: {error}; {_way_out(error)}"
            ) from None

    def _read(self, response: httpx.Response) -> Row:
        """The answer's object. Raises OperationError for one that says no."""
        try:
            answer = response.json()
            code = answer["meta"]["responseCode"]
        except (ValueError, KeyError, TypeError):
            raise OperationError(
                f"what answers at {self._url} ({response.status_code}) is no management API;"
                " --url says where the router's http listener is"
            ) from None
        if code == 200 and isinstance(answer, dict):
            return answer
        raise OperationError(self._refusal(code, answer["meta"].get("error", {})))

    def _refusal(self, code: int, error: Row) -> str:
        said = str(error.get("description", f"response code {code}"))
        if code == 401 and not self._user:
            return f"{self._url} wants a user; give --user and --password-file"
        if code == 401:
            return f"{self._url} refused user {self._user}: {said}"
        return f"{self._url}: {said}"


def _queue(msg_vpn: str, queue: str) -> str:
    return f"/msgVpns/{segment(msg_vpn)}/queues/{segment(queue)}"


def _authorities(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise OperationError(
            f"cannot use authorities {ca_file}: {error.strerror or error}"
        ) from error


def _way_out(error: httpx.TransportError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "--ca-file names the authority of its certificate"
    return "does the router run, with an http listener there? --url or VPNROUTER_URL says where"
