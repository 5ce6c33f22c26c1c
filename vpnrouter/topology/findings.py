"""What the jobs have to say about a mesh: one shape for all of them."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

ERROR: Final = "error"
WARNING: Final = "warning"
INFO: Final = "info"

Severity = Literal["error", "warning", "info"]

_RANKS: Final = {ERROR: 0, WARNING: 1, INFO: 2}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing worth knowing; the fields are the columns of `vpnrouter.topology.schema.FINDINGS`."""

    kind: str
    severity: Severity
    router: str | None = None
    vpn: str | None = None
    peer_router: str | None = None
    peer_vpn: str | None = None
    bridge: str | None = None
    client: str | None = None
    endpoint: str | None = None
    topic: str | None = None
    reason: str | None = None
    messages: int | None = None
    bytes: int | None = None
    value: float | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    detail: str = ""


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then the rest; within these by kind, then by messages, then by place."""
    return sorted(
        findings,
        key=lambda one: (
            _RANKS[one.severity],
            one.kind,
            -(one.messages or 0),
            *(str(getattr(one, name) or "") for name in ("router", "vpn", "bridge", "client")),
            one.topic or "",
        ),
    )


def rows_of(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The findings as rows of FINDINGS."""
    return [asdict(one) for one in findings]
