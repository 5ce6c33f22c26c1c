"""Ids of spans: what happened to one message at one place, named alike by all who know of it.

A router that hands a message to a client tells it the id of the span of that delivery, and who turns
trace files into spans later comes to the same id: it is a function of the row.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

_BYTES: Final = 8


def span_id(
    trace_high: int,
    trace_low: int,
    message_id: int,
    router: str,
    vpn: str,
    kind: str,
    client: str = "",
    endpoint: str = "",
) -> int:
    """The id of a span, 1 … 2**64-1 (W3C Trace Context, 3.2.2.4: 0 is invalid).

    Args:
        trace_high: high half of the trace id, 0 … 2**64-1.
        trace_low: low half of it.
        message_id: 0 … 2**64-1, the message's number as trace rows have it (as a number without sign).
        router: router where it happened.
        vpn: message VPN where it happened.
        kind: name of the event as in trace rows, such as "deliver".
        client: as in the row; "" for none.
        endpoint: as in the row; "" for none.

    Names may hold any character: none of them can be taken for another's end.
    """
    numbers = (
        trace_high.to_bytes(8, "big") + trace_low.to_bytes(8, "big") + message_id.to_bytes(8, "big")
    )
    digest = blake2b(numbers, digest_size=_BYTES)
    for name in (router, vpn, kind, client, endpoint):
        data = name.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big"))
        digest.update(data)
    return int.from_bytes(digest.digest(), "big") or 1
