"""The events that a router in memory has recorded."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from vpnrouter.explain.request import Event, path_of
from vpnrouter.trace.events import EVENT_NAMES, FIRST_WITHOUT_MESSAGE, MODE_NAMES
from vpnrouter.trace.recorder import RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vpnrouter.trace.recorder import Block, Recorder

_RECORD: Final = Struct("<qQQQqqqII")


def take_events(router: str, recorder: Recorder) -> list[Event]:
    """What `recorder` holds of messages, in order; it holds nothing afterwards.

    What is refused before anybody asks whether it is traced has rows without a trace: they count too.
    """
    recorder.cut()
    return [event for block in recorder.take() for event in _events(router, block)]


def _events(router: str, block: Block) -> Iterator[Event]:
    topics = list(block.topics)
    for index in range(block.count):
        # The times are those of a clock that is turned by hand.
        _, high, low, number, size, _, _, where, what = _RECORD.unpack_from(
            block.data, index * RECORD_BYTES
        )
        context = block.contexts[where]
        if context.event >= FIRST_WITHOUT_MESSAGE:
            continue
        yield Event(
            router,
            EVENT_NAMES[context.event],
            context.vpn,
            topics[what].decode(errors="replace"),
            MODE_NAMES[context.mode],
            context.client,
            context.endpoint,
            context.bridge,
            context.peer_router,
            context.peer_vpn,
            context.hops,
            path_of(context.path),
            context.reason,
            size=size,
            message_id=number if high or low else 0,
            origin_router=context.origin_router,
            origin_vpn=context.origin_vpn,
            partition=context.partition,
        )
