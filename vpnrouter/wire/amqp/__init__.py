"""Reads and writes AMQP 1.0 (ISO/IEC 19464): types, performatives, frames and the sections of messages.

No state and no I/O. Whatever a peer sends, the only exception is ProtocolError, whose code `conditions` turns into the
condition that the peer is told.
"""
