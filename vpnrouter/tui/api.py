"""One router's management API, asked without keeping the screen from keys."""

import json
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple, final
from urllib.parse import unquote

import httpx

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.limits import TUI_ANSWER
from vpnrouter.management.rows import Row

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
    """There was no answer, in one line."""


class DeniedError(OperationError):
    """The router's answer is no, in one line; `status` is the field's name of why."""

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
    """Asks one router. `ca_file` is a PEM file of authorities, "" for those of this system.

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
        """One object."""
        data = (await self.get(path))["data"]
        return data if isinstance(data, dict) else {}

    async def content(self, path: str) -> bytes:
        """What a path holds that answers with bytes."""
        status, body = await self._send("GET", path)
        if status != 200:
            self._read(status, body)
        return body

    async def put(self, path: str, body: Row) -> Row:
        """Have something done."""
        return self._read(*await self._send("PUT", path, body=body))

    async def patch(self, path: str, body: Row) -> Row:
        """Have some attributes of an object changed."""
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
        said = str(error.get("description", f"response code {code}"))
        raise DeniedError(said, str(error.get("status", "")), int(code))


def _authorities(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise OperationError(
            f"cannot use authorities {ca_file}: {error.strerror or error}"
        ) from error
