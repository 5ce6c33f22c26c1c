"""Requests the management API of one router, and keeps whether it answers, and its rows."""

from __future__ import annotations

import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, final
from urllib.parse import unquote

import httpx

from vpnrouter import limits
from vpnrouter.bridges.status import VIRTUAL_ROUTER
from vpnrouter.errors import OperationError
from vpnrouter.limits import TUI_ANSWER, TUI_QUEUES_LOOKED_AT, TUI_ROWS
from vpnrouter.management.answers.rows import Row, segment
from vpnrouter.tui.router_state import RouterState

MONITOR: Final = "/SEMP/v2/monitor"
ACTION: Final = "/SEMP/v2/action"
CONFIG: Final = "/SEMP/v2/config"
OURS: Final = "/vpnrouter/v1"

ROUTER: Final = f"{OURS}/router"
MSG_VPNS: Final = f"{MONITOR}/msgVpns"
ALL_BRIDGES: Final = f"{OURS}/bridges"
ALL_CONNECTORS: Final = f"{OURS}/connectors"
ALL_QUEUES: Final = f"{OURS}/queues"
ALL_CLIENTS: Final = f"{OURS}/clients"
EVENTS: Final = f"{OURS}/events"
TRACES: Final = f"{OURS}/traces"


def msg_vpn(name: str) -> str:
    """A message VPN, below one of the roots."""
    return f"/msgVpns/{segment(name)}"


def bridge(vpn: str, name: str) -> str:
    """A bridge, below one of the roots."""
    return f"{msg_vpn(vpn)}/bridges/{segment(name, VIRTUAL_ROUTER)}"


def connector(vpn: str, name: str) -> str:
    """A connector, below one of the roots."""
    return f"{msg_vpn(vpn)}/connectors/{segment(name)}"


def queue(vpn: str, name: str) -> str:
    """A queue, below one of the roots."""
    return f"{msg_vpn(vpn)}/queues/{segment(name)}"


def client(vpn: str, name: str) -> str:
    """A client, below one of the roots."""
    return f"{msg_vpn(vpn)}/clients/{segment(name)}"


def subscriptions(vpn: str) -> str:
    """The subscriptions of a message VPN, or of all of them."""
    return f"{OURS}{msg_vpn(vpn) if vpn else ''}/subscriptions"


def matches(vpn: str) -> str:
    """The subscriptions of a message VPN that match a topic."""
    return f"{OURS}{msg_vpn(vpn)}/matches"


FIRST_DELAY_S: Final = 1.0
"""Seconds from the first failure to the next try."""

LONGEST_DELAY_S: Final = 8.0
"""Seconds between tries when it has been away for long: a person waits for it."""


@final
class Connection:
    """One router's API as seen from here. Times are seconds of one clock that does not jump.

    `why` is "" while it answers. The delay doubles from try to try.
    """

    def __init__(self) -> None:
        self.why = "not asked yet"
        self.lost_at: float | None = None
        self.answered_at: float | None = None
        self.next_try = 0.0
        self._delay = FIRST_DELAY_S

    @property
    def is_lost(self) -> bool:
        """Whether the last request had no answer."""
        return self.lost_at is not None

    def is_due(self, now: float) -> bool:
        """Whether the router may be requested at `now`: one that is lost waits for its next try."""
        return not self.is_lost or now >= self.next_try

    def answered(self, now: float) -> bool:
        """Note an answer; returns True when the one before it was missing."""
        was = self.is_lost
        self.why = ""
        self.lost_at = None
        self.answered_at = now
        self._delay = FIRST_DELAY_S
        return was

    def failed(self, now: float, why: str) -> None:
        """Note that an answer is missing, `why` in one line, and put off the next try."""
        self.why = why
        if self.lost_at is None:
            self.lost_at = now
        self.next_try = now + self._delay
        self._delay = min(LONGEST_DELAY_S, self._delay * 2)


PATIENCE_S: Final = 5.0
"""Seconds to connect, and to wait for an answer: a person looks at the screen meanwhile."""

ACTION_PATIENCE_S: Final = 600.0
"""Seconds to wait for something to be done: a queue may hold millions of messages."""


class Page(NamedTuple):
    """Rows of one page, how many there are in all pages, and the cursor of the next one, "" for none."""

    rows: list[Row]
    total: int
    cursor: str


class UnreachableError(OperationError):
    """The router gave no answer; the text says in one line why."""


class DeniedError(OperationError):
    """The router answered no, in one line; `status` is the field's name of the reason."""

    def __init__(self, message: str, status: str = "", code: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def is_for_want_of_rights(self) -> bool:
        """Whether this user may look and not change."""
        return self.code == 403


@final
class RouterApi:
    """Sends requests to one router. `ca_file` is a PEM file of authorities, "" for those of this system.

    Raises ValueError for a `url` that is none of http or https. All methods raise UnreachableError when there
    is no answer and DeniedError when the answer is no.
    """

    def __init__(self, url: str, user: str = "", password: str = "", *, ca_file: str = "") -> None:
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL:
            parsed = httpx.URL("")
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise ValueError(f"{url} is not of the form http://HOST:PORT or https://HOST:PORT")
        if parsed.userinfo:
            # It would stand on the screen, and in the list of processes.
            raise ValueError("a URL holds no password: --user and --password-file")
        self.url = url.rstrip("/")
        self._http = httpx.AsyncClient(
            auth=(user, password) if user else None,
            timeout=PATIENCE_S,
            verify=_authorities(ca_file) if parsed.scheme == "https" else True,
            # A proxy of the environment is for other hosts than this one.
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def page(
        self,
        path: str,
        *,
        count: int = limits.MANAGEMENT_PAGE_ROWS,
        cursor: str = "",
        where: str = "",
        more: Mapping[str, str] | None = None,
    ) -> Page:
        """One page of a collection, of at most `count` rows behind `cursor`."""
        query = {"count": str(count)} | {"cursor": cursor, "where": where} | dict(more or {})
        answer = await self.get(path, {name: value for name, value in query.items() if value})
        meta = answer["meta"]
        paging = meta.get("paging")
        following = "" if paging is None else unquote(paging["cursorQuery"])
        return Page(answer["data"], int(meta.get("count", len(answer["data"]))), following)

    async def rows(self, path: str, most: int, where: str = "") -> list[Row]:
        """The first rows of a collection, at most about `most`."""
        found: list[Row] = []
        cursor = ""
        while True:
            page = await self.page(path, cursor=cursor, where=where)
            found += page.rows
            cursor = page.cursor
            if not cursor or len(found) >= most:
                return found[:most]

    async def get(self, path: str, query: dict[str, str] | None = None) -> Row:
        """The answer's object, with `data` and `meta`."""
        return self._read(*await self._send("GET", path, query=query))

    async def one(self, path: str) -> Row:
        """The object at `path`."""
        data = (await self.get(path))["data"]
        return data if isinstance(data, dict) else {}

    async def content(self, path: str) -> bytes:
        """The bytes at `path`. Raises DeniedError where the answer is no."""
        status, body = await self._send("GET", path)
        if status != 200:
            self._read(status, body)
        return body

    async def put(self, path: str, body: Row) -> Row:
        """Request an action; returns the answer."""
        return self._read(*await self._send("PUT", path, body=body))

    async def patch(self, path: str, body: Row) -> Row:
        """Change attributes of an object."""
        return self._read(*await self._send("PATCH", path, body=body))

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Row | None = None,
    ) -> tuple[int, bytes]:
        patience = httpx.Timeout(
            PATIENCE_S if body is None else ACTION_PATIENCE_S, connect=PATIENCE_S
        )
        try:
            async with self._http.stream(
                method, self.url + path, params=query, json=body, timeout=patience
            ) as response:
                parts, length = [], 0
                async for part in response.aiter_bytes():
                    parts.append(part)
                    length += len(part)
                    if length > TUI_ANSWER:
                        raise DeniedError(f"the answer is longer than {TUI_ANSWER:,} bytes")
                return response.status_code, b"".join(parts)
        except httpx.TimeoutException:
            raise UnreachableError("no answer in time") from None
        except httpx.HTTPError as error:
            raise UnreachableError(str(error) or type(error).__name__) from None

    def _read(self, status: int, body: bytes) -> Row:
        try:
            answer = json.loads(body)
            code = answer["meta"]["responseCode"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DeniedError(
                f"what answers at {self.url} ({status}) is no management API", code=status
            ) from None
        if code == 200 and isinstance(answer, dict):
            answer.setdefault("data", {})
            return answer
        error = answer["meta"].get("error", {})
        refusal = str(error.get("description", f"response code {code}"))
        raise DeniedError(refusal, str(error.get("status", "")), int(code))


def _authorities(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise OperationError(
            f"cannot use authorities {ca_file}: {error.strerror or error}"
        ) from error


QUEUES_EVERY_S = 3.0
"""Seconds between looks at all queues for trouble: the router goes through all of them for it."""


ROUTER_EVERY_S: Final = 60.0
"""Seconds between looks at what the router tells of itself: its certificates may be renewed."""


@final
class Router:
    """`clock` gives seconds and does not jump."""

    def __init__(self, api: RouterApi, clock: Callable[[], float]) -> None:
        self.api = api
        self.clock = clock
        self.connection = Connection()
        self.store = RouterState()
        self.refusal = ""
        """Why the last look was refused, "" when it was not."""
        self._known_at: float | None = None
        self._queues_at: float | None = None

    @property
    def label(self) -> str:
        """The router's name, or its address while the name is not known."""
        return self.store.name or self.api.url.partition("://")[2]

    async def look(self, fetch: Callable[[Router], Awaitable[None]]) -> bool:
        """Fetch what a screen shows. False without an answer, or before the next try of a lost router is due."""
        if not self.connection.is_due(self.clock()):
            return False
        try:
            if self._known_at is None:
                await self.fetch_router()
            await fetch(self)
        except UnreachableError as error:
            self.lost(error)
            return False
        except DeniedError as error:
            self.refusal = str(error)
        else:
            self.refusal = ""
        self.connection.answered(self.clock())
        return True

    def lost(self, error: UnreachableError) -> None:
        """Note that there was no answer; another router may answer next time."""
        self.connection.failed(self.clock(), str(error))
        self.store.meters.pause()
        self._known_at = None

    async def fetch_router(self) -> None:
        """Fetch what the router tells of itself and of the user, less often than the rest."""
        now = self.clock()
        if self._known_at is not None and now - self._known_at < ROUTER_EVERY_S:
            return
        try:
            self.store.note_router(await self.api.one(ROUTER))
        except DeniedError as error:
            # A router that does not tell its name is called by its address.
            if error.code in {401, 403, 429}:
                raise
        self._known_at = now

    async def fetch_msg_vpns(self) -> None:
        """Fetch all message VPNs."""
        rows = await self.api.rows(MSG_VPNS, TUI_ROWS)
        self.store.note_msg_vpns(self.clock(), rows)

    async def fetch_bridges(self) -> None:
        """Fetch the bridges; where there are very many, fetch those that are not up as well."""
        rows = await self.api.rows(ALL_BRIDGES, TUI_ROWS)
        if len(rows) == TUI_ROWS:
            down = await self.api.rows(ALL_BRIDGES, TUI_ROWS, "health!=up")
            known = {(row["msgVpnName"], row["bridgeName"]) for row in rows}
            rows += [row for row in down if (row["msgVpnName"], row["bridgeName"]) not in known]
        self.store.note_bridges(self.clock(), rows)

    async def fetch_connectors(self) -> None:
        """Fetch the connectors, with their links."""
        rows = await self.api.rows(ALL_CONNECTORS, TUI_ROWS)
        self.store.note_connectors(self.clock(), rows)

    async def fetch_objects(self, collection: str) -> None:
        """Fetch the objects of a kind, by the part of the path that lists them."""
        self.store.objects[collection] = await self.api.rows(f"{OURS}/{collection}", TUI_ROWS)

    async def fetch_queues(self) -> None:
        """Fetch the queues with messages, less often than the rest."""
        now = self.clock()
        if self._queues_at is None or now - self._queues_at >= QUEUES_EVERY_S:
            rows = await self.api.rows(ALL_QUEUES, TUI_QUEUES_LOOKED_AT, "msgCount>0")
            self.store.note_queues(now, rows)
            self._queues_at = now
