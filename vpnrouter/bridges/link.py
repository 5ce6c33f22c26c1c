"""What both ends of a link have in common: framing, heartbeats, refusals, goodbyes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from vpnrouter import limits
from vpnrouter.core.connection import Connection
from vpnrouter.core.direct import scan
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import close_codes, encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at
from vpnrouter.wire.link.order import ACCEPTOR, HANDSHAKE, UP, check_order

if TYPE_CHECKING:
    from vpnrouter.core.plane import Plane
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.timers import Timer
    from vpnrouter.wire.link.decode import Frame

HANDSHAKE_TIMER: Final = 0
HEARTBEAT_TIMER: Final = 1

MILLISECOND_NS: Final = 1_000_000

MISSED: Final = 3
"""Heartbeat intervals of silence after which the peer counts as dead (LINK-22)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Link(Connection):
    """One end of a link; `role` is ACCEPTOR or DIALER of order.py.

    `publisher` is set on the end that receives messages. Control counters are of frames and bytes.
    """

    __slots__ = (
        "_heartbeat_ns",
        "_timer",
        "control_rx_bytes",
        "control_rx_msgs",
        "control_tx_bytes",
        "control_tx_msgs",
        "ended",
        "max_frame",
        "phase",
        "publisher",
        "role",
    )

    def __init__(self, plane: Plane, peer: str, role: int) -> None:
        super().__init__(plane, peer, limits.OUTBOX_BYTES)
        self.role = role
        self.phase = HANDSHAKE
        self.ended = False
        self.max_frame = limits.LINK_HANDSHAKE_BYTES
        self.publisher: Publisher | None = None
        self.control_rx_msgs = 0
        self.control_rx_bytes = 0
        self.control_tx_msgs = 0
        self.control_tx_bytes = 0
        self._heartbeat_ns = 0
        self._timer: Timer | None = plane.timers.arm(
            plane.now_ns + limits.CONNECT_TIMEOUT_S * 1000 * MILLISECOND_NS, self, HANDSHAKE_TIMER
        )

    # -- input -----------------------------------------------------------------------------------

    def consume(self, data: bytes) -> int:
        """See Connection.consume."""
        pos = 0
        end = len(data)
        try:
            while pos < end and not self.paused:
                publisher = self.publisher
                if publisher is not None:
                    pos = scan(publisher, data, pos, end)
                    if pos >= end:
                        break
                check_order(self.role, self.phase, data[pos])
                length = link_frame_at(data, pos, end, self.max_frame)
                if length == 0:
                    break
                frame = decode(data, pos, length)
                pos += length
                if isinstance(frame, frames.Direct):
                    self.on_message(frame, length)
                else:
                    self.control_rx_msgs += 1
                    self.control_rx_bytes += length
                    self._on_control(frame)
                if self.ended:
                    return -1
        except ProtocolError as error:
            self.broken(error.reason_code, str(error))
            return -1
        return pos

    def _on_control(self, frame: Frame) -> None:
        if isinstance(frame, frames.Heartbeat):
            if not frame.answer:
                self.say(encode.heartbeat(frames.Heartbeat(frame.token, answer=True)))
        elif isinstance(frame, frames.Close):
            self.end(frame.reason)
        elif not isinstance(frame, frames.Skipped):
            self.on_frame(frame)

    def on_frame(self, frame: Frame) -> None:
        """A control frame of this role."""
        raise AssertionError(frame)

    def on_message(self, frame: frames.Direct, length: int) -> None:
        """A message that the batch path left standing; `length` is its frame's."""
        raise AssertionError(length)

    # -- output ----------------------------------------------------------------------------------

    def say(self, data: bytes) -> None:
        """Queue one control frame."""
        self.control_tx_msgs += 1
        self.control_tx_bytes += len(data)
        self.outbox.control(data)

    def up(self, heartbeat_ms: int) -> None:
        """The handshake is done."""
        self.phase = UP
        self.max_frame = limits.LINK_FRAME_BYTES
        self._cancel_timer()
        if heartbeat_ms:
            self._heartbeat_ns = heartbeat_ms * MILLISECOND_NS
            self._timer = self.plane.timers.arm(
                self.plane.now_ns + self._heartbeat_ns, self, HEARTBEAT_TIMER
            )

    def broken(self, code: int, text: str) -> None:
        """The peer broke the protocol: tell it why and close."""
        self.goodbye(code, text)

    def goodbye(self, code: int, text: str) -> None:
        """Close with a code and a reason (LINK-16); a stranger is closed without an answer (LINK-11)."""
        if self.ended:
            return
        if code != close_codes.NOT_A_LINK:
            if self.phase == UP:
                self.say(encode.close(frames.Close(code, text)))
            elif self.role == ACCEPTOR:
                self.say(encode.refuse(frames.Refuse(code, text)))
        self.end(text)

    # -- end -------------------------------------------------------------------------------------

    def end(self, why: str) -> None:
        """Stop: nothing more is read, the socket closes when the outbox is empty."""
        if self.ended:
            return
        self.ended = True
        self.closing = True
        self._parts.clear()
        self._cancel_timer()
        self.publisher = None
        self.on_end(why)
        if not self.outbox.dirty:
            self.outbox.dirty = True
            self.plane.ready.append(self.outbox)

    def on_end(self, why: str) -> None:
        """Undo what the link did to the router; `why` is for people."""
        raise AssertionError(why)

    def lost(self, reason: str) -> None:
        """See Connection.lost."""
        self.end(reason)
        self.drop_waiting()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_timer(self, kind: int, now_ns: int) -> None:
        """No handshake in time, or a heartbeat is due."""
        self._timer = None
        if self.ended:
            return
        if kind == HANDSHAKE_TIMER:
            self.goodbye(
                close_codes.HANDSHAKE_TIMEOUT, close_codes.REASONS[close_codes.HANDSHAKE_TIMEOUT]
            )
            return
        if now_ns - self.heard_ns >= MISSED * self._heartbeat_ns:
            self.goodbye(
                close_codes.HEARTBEAT_TIMEOUT, close_codes.REASONS[close_codes.HEARTBEAT_TIMEOUT]
            )
            return
        if now_ns - self.heard_ns >= self._heartbeat_ns:
            self.say(encode.heartbeat(frames.Heartbeat(now_ns & 0xFFFF_FFFF, answer=False)))
        # A dead peer is to be missed after three intervals, not at the beat after.
        at_ns = min(now_ns + self._heartbeat_ns, self.heard_ns + MISSED * self._heartbeat_ns)
        self._timer = self.plane.timers.arm(at_ns, self, HEARTBEAT_TIMER)
