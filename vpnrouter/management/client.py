"""A client of the management API, for commands."""

import ssl
from collections.abc import Iterator
from typing import Final, Self, final
from urllib.parse import unquote

import httpx

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.management.attributes import Row
from vpnrouter.management.envelope import segment

PATIENCE_S: Final = 10.0
"""Seconds to connect, and to wait for each answer."""

ALL_BRIDGES: Final = "/vpnrouter/v1/bridges"


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
        if msg_vpn:
            # What is asked for must exist: a misspelt name is not an empty answer.
            self._get(f"/SEMP/v2/monitor/msgVpns/{segment(msg_vpn)}", {})
        rows = list(self._rows(ALL_BRIDGES))
        return [row for row in rows if msg_vpn in {"", row["msgVpnName"]}]

    def _rows(self, path: str) -> Iterator[Row]:
        query = {"count": str(limits.MANAGEMENT_PAGE_ROWS)}
        while True:
            answer = self._get(path, query)
            yield from answer["data"]
            paging = answer["meta"].get("paging")
            if paging is None:
                return
            query["cursor"] = unquote(paging["cursorQuery"])

    def _get(self, path: str, query: dict[str, str]) -> Row:
        try:
            response = self._http.get(self._url + path, params=query)
        except httpx.TimeoutException:
            raise OperationError(
                f"no answer from {self._url} within {PATIENCE_S:.0f} s; try again"
            ) from None
        except httpx.TransportError as error:
            raise OperationError(
                f"cannot connect to {self._url}: {error}; {_way_out(error)}"
            ) from None
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
