"""Writes the AsyncAPI documents: `ROUTER/VPN.yaml`, with names that every file system takes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import quote

from vpnrouter.report.asyncapi.channels import VpnChannels
from vpnrouter.report.asyncapi.document import Observed, document_of, yaml_of

_LENGTH: Final = 200
"""Characters of a name of a file, of the 255 bytes that file systems take."""

_SUFFIX: Final = ".yaml"


def write_documents(
    write: Callable[[str, str], None], vpns: Sequence[VpnChannels], observed: Observed
) -> None:
    """Write one document a message VPN; `write` takes the path of a file in the directory, and its text.

    Raises:
        OperationError: a file cannot be written.
    """
    routers = file_names({vpn.router for vpn in vpns})
    by_router: dict[str, list[VpnChannels]] = {}
    for vpn in vpns:
        by_router.setdefault(vpn.router, []).append(vpn)
    for router, some in by_router.items():
        names = file_names(vpn.vpn for vpn in some)
        for vpn in some:
            text = yaml_of(document_of(vpn, observed))
            write(f"{routers[router]}/{names[vpn.vpn]}{_SUFFIX}", text)


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return what files of these names are called, each by its name.

    Letters, digits, `_`, `-` and dots within stay. All else is written as in URLs, so that no name leads out of its
    directory or is hidden. A long name is cut, and a digest tells it from others; the same where two names differ in
    upper and lower case alone.
    """
    escaped = {name: _escaped(name) for name in names}
    alike = Counter(one.lower() for one in escaped.values())
    return {
        name: _marked(name, one) if len(one) > _LENGTH or alike[one.lower()] > 1 else one
        for name, one in escaped.items()
    }


def _escaped(name: str) -> str:
    escaped = quote(name, safe="", errors="surrogatepass").replace("~", "%7E")
    return f"%2E{escaped[1:]}" if escaped.startswith(".") else escaped or "%"


def _marked(name: str, escaped: str) -> str:
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{escaped[:_LENGTH]}~{digest[:16]}"
