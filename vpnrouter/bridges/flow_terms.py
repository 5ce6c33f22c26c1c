"""What a bridge wants of guaranteed messages: values of its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.wire.link.frames import LANES_TOPIC, ON_REJECT_BLOCK

if TYPE_CHECKING:
    from vpnrouter.topics.mapping import TopicMapping


@final
class FlowTerms:
    """`on_reject` is ON_REJECT_…, `lanes` LANES_… of frames.py, `mapping` renames what comes in.

    A message that is refused is tried again after `retry_ms` at the latest.
    """

    __slots__ = ("lanes", "mapping", "max_ttl", "on_reject", "retry_ms", "selector")

    def __init__(
        self,
        on_reject: int = ON_REJECT_BLOCK,
        lanes: int = LANES_TOPIC,
        retry_ms: int = 1000,
        max_ttl: int = limits.HOPS,
        mapping: TopicMapping | None = None,
        selector: str = "",
    ) -> None:
        self.on_reject = on_reject
        self.lanes = lanes
        self.retry_ms = retry_ms
        self.max_ttl = max_ttl
        self.mapping = mapping
        self.selector = selector
