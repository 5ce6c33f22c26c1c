"""Hands on what AMQP clients send, byte for byte, with Apache Qpid Proton: the measure of what a router may change.

It prints its port when it is there, and ends with its input. Each address that is asked for is a queue in memory, and a
dynamic one gets a name. A client of JMS is told the prefixes that the router tells it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict, deque

from proton import Delivery, Event, symbol
from proton.handlers import Handshaker
from proton.reactor import Container

CREDIT = 1_000


class Wire:
    """Reads messages as bytes and sends them as such."""

    def __init__(self) -> None:
        # What Proton's own handler of messages does would decode them.
        self.handlers = [Handshaker()]
        self._waiting: dict[str, deque[bytes]] = defaultdict(deque)
        self._made = 0

    def on_connection_remote_open(self, event: Event) -> None:
        """Answer with the prefixes of addresses."""
        event.connection.properties = {
            symbol("queue-prefix"): "queue://",
            symbol("topic-prefix"): "topic://",
        }

    def on_link_remote_open(self, event: Event) -> None:
        """Name what is dynamic, and let a sender begin."""
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        end = link.source if link.is_sender else link.target
        if end.dynamic:
            self._made += 1
            end.address = f"queue://made-{self._made}"
        link.open()
        if link.is_receiver:
            link.flow(CREDIT)

    def on_link_flow(self, event: Event) -> None:
        """Send what waits."""
        if event.link.is_sender:
            self._send(event.link)

    def on_delivery(self, event: Event) -> None:
        """Take a message, or forget one that has been taken."""
        delivery = event.delivery
        if delivery.link.is_sender:
            if delivery.remote_state or delivery.settled:
                delivery.settle()
        elif delivery.readable and not delivery.partial:
            self._waiting[delivery.link.target.address].append(delivery.link.recv(delivery.pending))
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
            delivery.link.flow(1)

    def _send(self, link: object) -> None:
        waiting = self._waiting[link.source.address]
        while link.credit > 0 and waiting:
            self._made += 1
            link.delivery(str(self._made))
            link.send(waiting.popleft())
            link.advance()
        if link.drain_mode:
            link.drained()


def main() -> None:
    """Serve until the input ends, or something fails."""
    container = Container(Wire())
    acceptor = container.listen("127.0.0.1:0")
    print(acceptor._selectable._delegate.getsockname()[1], flush=True)

    def end() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()
    container.run()


main()
