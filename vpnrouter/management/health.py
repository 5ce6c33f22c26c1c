"""Health: `/health/live` while the process answers, `/health/ready` while the router serves."""

from typing import Final

from fastapi import APIRouter
from starlette.responses import JSONResponse

from vpnrouter.management.context import MonitorHere

routes: Final = APIRouter(prefix="/health", tags=["health"])


@routes.get("/live", summary="Whether the process answers")
async def live() -> dict[str, str]:
    """Whoever can answer lives."""
    return {"status": "live"}


@routes.get(
    "/ready",
    summary="Whether the router serves",
    response_model=None,
    responses={503: {"description": "It does not serve yet, or it stops"}},
)
async def ready(monitor: MonitorHere) -> JSONResponse:
    """Ready from the moment all listeners are bound until the router stops."""
    if monitor.is_ready():
        return JSONResponse({"status": "ready"})
    return JSONResponse({"status": "not ready"}, 503)
