import pytest

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.extension import decode_extension, encode_extension
from vpnrouter.wire.link.frames import Extension

FULL = "r" * 127 + "/" + "v" * 127


def test_the_longest_path_fits() -> None:
    """255 visited VPNs with the longest names cross, and stay below LINK_EXTENSION_BYTES."""
    path = [FULL] * limits.LINK_PATH_ENTRIES
    raw = encode_extension(
        Extension(path, 255, trace_low=1, origin_router=FULL, origin_vpn=FULL, retain=True)
    )
    assert len(raw) <= limits.LINK_EXTENSION_BYTES
    assert decode_extension(raw, 0, len(raw)).path == path


@pytest.mark.parametrize(
    "ext",
    [
        Extension([FULL] * (limits.LINK_PATH_ENTRIES + 1), 256),
        Extension([FULL] * 3, 2),
        Extension([], 0),
        Extension(["x" * (limits.LINK_PATH_ENTRY_BYTES + 1)]),
        Extension([""]),
        Extension([], origin_router="r"),
    ],
)
def test_what_no_peer_would_take_is_not_built(ext: Extension) -> None:
    """One step beyond each bound is a ValueError."""
    with pytest.raises(ValueError):
        encode_extension(ext)


def test_a_path_of_256_is_refused() -> None:
    """One visited VPN beyond LINK_PATH_ENTRIES is malformed (LINK-31)."""
    raw = b"\x01\x80\x04" + b"\x01v" * 256
    with pytest.raises(ProtocolError) as caught:
        decode_extension(raw, 0, len(raw))
    assert caught.value.reason_code == 0x81


def test_defaults_cost_nothing() -> None:
    """An extension that says nothing is empty, and a path implies its hops."""
    assert encode_extension(Extension([])) == b""
    assert encode_extension(Extension(["r/v", "r/w"], 2)) == b"\x01\x08\x03r/v\x03r/w"
