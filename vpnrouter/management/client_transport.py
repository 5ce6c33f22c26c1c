"""How commands and screens reach a router's management API: requests, pages, and what is said when they fail."""

import ssl
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Self
from urllib.parse import unquote

import httpx

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.management.answers.rows import Row

PATIENCE_S: Final = 10.0
"""Seconds to connect, and to wait for each answer."""

ACTION_PATIENCE_S: Final = 600.0
"""Seconds to wait for something to be done: a queue may hold millions of messages."""


class Page(NamedTuple):
    """Rows of one page, how many objects there are in all pages, and the cursor of the next one, "" for none."""

    rows: list[Row]
    total: int
    cursor: str


class Transport:
    """Asks one router. `ca_file` is a PEM file of authorities, "" for those of this system; `patience_s` is
    how long to wait for a connection and for an answer.

    Raises ValueError for a `url` that is none of http or https. All methods raise OperationError, in
    one line with the way out, when there is no answer or the answer is no. Not for several threads at once.
    """

    def __init__(
        self,
        url: str,
        user: str = "",
        password: str = "",
        *,
        ca_file: str = "",
        patience_s: float = PATIENCE_S,
    ) -> None:
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL:
            parsed = httpx.URL("")
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise ValueError(f"{url} is not of the form http://HOST:PORT or https://HOST:PORT")
        self._url = url.rstrip("/")
        self._user = user
        self._patience_s = patience_s
        self._http = httpx.Client(
            auth=(user, password) if user else None,
            timeout=patience_s,
            verify=_authorities(ca_file) if parsed.scheme == "https" else True,
            # A proxy of the environment is for other hosts than this one.
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where it asks, without a slash at the end."""
        return self._url

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def page(
        self,
        path: str,
        *,
        count: int = limits.MANAGEMENT_PAGE_ROWS,
        cursor: str = "",
        where: str = "",
        select: str = "",
        topic: str = "",
    ) -> Page:
        """Return one page of a collection: at most `count` rows, 1 to MANAGEMENT_PAGE_ROWS, behind `cursor`."""
        query = {"count": str(min(count, limits.MANAGEMENT_PAGE_ROWS))}
        query |= _given(cursor=cursor, where=where, select=select, topic=topic)
        answer = self.get(path, query)
        meta = answer["meta"]
        paging = meta.get("paging")
        rows = answer["data"]
        following = "" if paging is None else unquote(paging["cursorQuery"])
        return Page(rows, int(meta.get("count", len(rows))), following)

    def rows(
        self,
        path: str,
        *,
        limit: int | None = None,
        cursor: str = "",
        where: str = "",
        select: str = "",
        topic: str = "",
    ) -> Iterator[Row]:
        """Return at most `limit` rows of a collection, requested page by page as they are consumed."""
        parameters = {"where": where, "select": select, "topic": topic}
        return islice(self._pages(path, limit, cursor, parameters), limit)

    def get(self, path: str, query: dict[str, str] | None = None) -> Row:
        """Return the answer's object, with `data` and `meta`."""
        return self._read(self._send("GET", path, query=query))

    def put(self, path: str, body: Row) -> Row:
        """Have an action done, or an object replaced."""
        return self._change("PUT", path, body)

    def patch(self, path: str, body: Row) -> Row:
        """Have some attributes of an object changed."""
        return self._change("PATCH", path, body)

    def post(self, path: str, body: Row) -> Row:
        """Have an object created, or a query answered that is too long for a path."""
        return self._change("POST", path, body)

    def delete(self, path: str) -> Row:
        """Have an object deleted."""
        return self._change("DELETE", path, None)

    def content(self, path: str) -> bytes:
        """Return the bytes that a path answers with."""
        response = self._send("GET", path)
        if response.status_code == 200:
            return response.content
        self._read(response)
        raise OperationError(f"{self._url}: no such content in the answer")

    def _pages(
        self, path: str, limit: int | None, cursor: str, parameters: dict[str, str]
    ) -> Iterator[Row]:
        most = limits.MANAGEMENT_PAGE_ROWS if limit is None else max(1, limit)
        while True:
            page = self.page(path, count=most, cursor=cursor, **parameters)
            yield from page.rows
            cursor = page.cursor
            if not cursor:
                return

    def _change(self, method: str, path: str, body: Row | None) -> Row:
        return self._read(self._send(method, path, body=body, patience_s=ACTION_PATIENCE_S))

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Row | None = None,
        patience_s: float | None = None,
    ) -> httpx.Response:
        waits_s = self._patience_s if patience_s is None else patience_s
        patience = httpx.Timeout(waits_s, connect=self._patience_s)
        request = partial(
            self._http.request, method, self._url + path, params=query, json=body, timeout=patience
        )
        try:
            try:
                return request()
            except httpx.TransportError as error:
                # What changes nothing may be asked again (RFC 9110, 9.2.2).
                if method != "GET" or not _closed(error):
                    raise
                return request()
        except httpx.TimeoutException:
            raise OperationError(
                f"no answer from {self._url} within {waits_s:.0f} s; try again"
            ) from None
        except httpx.TransportError as error:
            raise OperationError(
                f"cannot connect to {self._url}: {error}; {_way_out(error)}"
            ) from None

    def _read(self, response: httpx.Response) -> Row:
        """Return the answer's object. Raises OperationError for an error."""
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
        text = str(error.get("description", f"response code {code}"))
        if code == 401 and not self._user:
            return f"{self._url} wants a user; give --user and --password-file"
        if code == 401:
            return f"{self._url} refused user {self._user}: {text}"
        return f"{self._url}: {text}"


def _given(**query: str) -> dict[str, str]:
    """Return the parameters that have a value."""
    return {name: value for name, value in query.items() if value}


def _authorities(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise OperationError(
            f"cannot use authorities {ca_file}: {error.strerror or error}"
        ) from error


def _closed(error: httpx.TransportError) -> bool:
    """Return whether a connection that waited for the next request was closed, as it is when a listener changes."""
    return isinstance(error, httpx.ReadError | httpx.WriteError) or (
        isinstance(error, httpx.RemoteProtocolError) and "disconnected" in str(error)
    )


def _way_out(error: httpx.TransportError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "--ca-file names the authority of its certificate"
    return "does the router run, with an http listener there? --url or VPNROUTER_URL says where"
