"""Serves `GET /metrics`."""

import ipaddress
import zlib
from typing import Final

import trio
from fastapi import APIRouter, Request
from starlette.responses import Response

from vpnrouter import limits
from vpnrouter.management.dependencies import CallerDep, ContextDep
from vpnrouter.management.errors import busy, invalid

routes: Final = APIRouter(tags=["vpnrouter"])

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

GZIP_BYTES: Final = 16_384
"""Pages below this size are sent as they are."""

GZIP: Final = 31
"""Window bits of zlib for a gzip stream."""


@routes.get(
    "/metrics",
    summary="Metrics for Prometheus",
    responses={200: {"description": "Samples", "content": {"text/plain": {}}}},
    response_model=None,
)
async def metrics(request: Request, context: ContextDep, caller: CallerDep) -> Response:
    """What the router counts, as far as the user sees it: see docs/metrics.md."""
    if request.query_params:
        raise invalid(f"there is no query parameter {min(request.query_params)}")
    exposition = context.exposition
    openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
    if exposition.making.statistics().tasks_waiting >= limits.METRICS_WAITING:
        raise busy("Too many scrapes at once; try again")
    sees = None if caller.msg_vpns is None else caller.sees
    async with exposition.making:
        page = await exposition.page(
            context.figures,
            context.router.name,
            sees,
            user="" if sees is None else caller.name,
            openmetrics=openmetrics,
        )
        body = page.encode(errors="backslashreplace")
        sent = {"cache-control": "no-store", "vary": "accept, accept-encoding"}
        if _compressed(request, len(body)):
            # zlib lets go of the interpreter meanwhile.
            body = await trio.to_thread.run_sync(_gzip, body)
            sent["content-encoding"] = "gzip"
    # Starlette would add a second charset to a media type.
    return Response(body, 200, sent | {"content-type": OPENMETRICS if openmetrics else TEXT})


def _compressed(request: Request, size: int) -> bool:
    """Return whether a page is worth being compressed: on its way to this machine it is not."""
    if size < GZIP_BYTES or "gzip" not in request.headers.get("accept-encoding", ""):
        return False
    try:
        return not ipaddress.ip_address(
            "" if request.client is None else request.client.host
        ).is_loopback
    except ValueError:
        return True


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, GZIP)
    return compressor.compress(body) + compressor.flush()
