from collections.abc import Callable

import pytest

from vpnrouter import limits
from vpnrouter.wire.link import encode, frames
from vpnrouter.wire.link.decode import decode, link_frame_at
from vpnrouter.wire.link.extension import encode_extension

LONG = "x" * (limits.LINK_TEXT_BYTES + 1)
STORE = b"s" * 16
MESSAGE = frames.Direct(b"a", b"", b"")
ALL = limits.LINK_FLOW_POSITIONS


@pytest.mark.parametrize(
    "build",
    [
        lambda: encode.bind(frames.Bind(1, "", 1)),
        lambda: encode.bind(frames.Bind(1, LONG, 1)),
        lambda: encode.bind(frames.Bind(1, "q", 1, selector="x" * (limits.SELECTOR_BYTES + 1))),
        lambda: encode.bind(frames.Bind(1, "q", 1, accepted={b"short": [(1, 1)]})),
        lambda: encode.bind(frames.Bind(1, "q", 1, accepted={STORE: []})),
        lambda: encode.bind(
            frames.Bind(1, "q", 1, accepted={STORE: [(1, ALL)], b"t" * 16: [(1, 1)]})
        ),
        lambda: encode.bind(
            frames.Bind(
                1,
                "q",
                1,
                accepted={bytes([n]) * 16: [(1, 1)] for n in range(limits.LINK_FLOW_STORES + 1)},
            )
        ),
        lambda: encode.bound(frames.Bound(1, 0, 1, 1, STORE, LONG)),
        lambda: encode.bound(frames.Bound(1, 0, 1, 1, b"")),
        lambda: encode.unbind(frames.Unbind(1, 0, LONG)),
        lambda: encode.forget(frames.Forget(1, [])),
        lambda: encode.reject(frames.Reject(1, 1, 0x97, LONG)),
        lambda: encode.guaranteed_message(frames.Guaranteed(1, 1, 16, 4, MESSAGE)),
        lambda: encode.guaranteed_message(frames.Guaranteed(1, 1, 0, 10, MESSAGE)),
        lambda: encode.guaranteed_message(frames.Guaranteed(1, 1, 0, -1, MESSAGE)),
    ],
)
def test_what_no_peer_would_take_is_not_built(build: Callable[[], bytes]) -> None:
    """One step beyond each bound is a ValueError, before a byte is on its way."""
    with pytest.raises(ValueError):
        build()


def test_the_largest_message_fits_a_frame() -> None:
    """LINK_FRAME_BYTES has room for 16 MiB of payload in GUARANTEED as well."""
    most = 5 + 14 + 3 + 2 + limits.TOPIC_BYTES + 4 + 65_535 + 65_535 + 16_777_216
    assert most <= limits.LINK_FRAME_BYTES


def test_the_largest_bind_fits_a_frame() -> None:
    """Accepted positions that all stand alone, with the longest names, still make one frame (LINK-3)."""
    ranges = [(2 * n, 1) for n in range(ALL)]
    raw = encode.bind(
        frames.Bind(1, LONG[1:], 1, accepted={STORE: ranges}, selector="x" * limits.SELECTOR_BYTES)
    )
    assert link_frame_at(raw, 0, len(raw), limits.LINK_FRAME_BYTES) == len(raw)
    frame = decode(raw, 0, len(raw))
    assert isinstance(frame, frames.Bind)
    assert frame.accepted == {STORE: ranges}


def test_a_message_costs_fifteen_bytes_more_than_direct() -> None:
    """What GUARANTEED adds to a message without an extension: its head and the extension's length."""
    body = encode.direct_body(b"a/b", b"", b"payload")
    raw = encode.guaranteed(7, 9, frames.PERSISTENT, 4, b"", body)
    assert len(raw) == len(encode.direct(body)) + 15
    assert raw.endswith(body)


@pytest.mark.parametrize("hops", [1, 2])
def test_the_lean_encoder_and_the_frame_agree(hops: int) -> None:
    """Bytes put together for each message are those of the frame as a value."""
    extension = frames.Extension([], hops, expiry_ms=5)
    message = frames.Direct(b"a/b", b"\x01\x01", b"payload", extension)
    lean = encode.guaranteed(
        7,
        2**63,
        frames.REDELIVERED,
        9,
        encode_extension(extension),
        encode.direct_body(b"a/b", b"\x01\x01", b"payload"),
    )
    frame = frames.Guaranteed(7, 2**63, frames.REDELIVERED, 9, message)
    assert lean == encode.guaranteed_message(frame)
