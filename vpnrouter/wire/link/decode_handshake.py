"""Bodies of HELLO, WELCOME, REFUSE and CLOSE to frames; the body is `buf[pos:end]`. See
decode.py.
"""

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link import field_codes, frames
from vpnrouter.wire.link.close_codes import (
    MALFORMED,
    NOT_A_LINK,
    PROTOCOL_ERROR,
    UNKNOWN_MANDATORY_FIELD,
    VERSION_MISMATCH,
)
from vpnrouter.wire.link.fields import Fields, text_at


def hello(buf: bytes, pos: int, end: int) -> frames.Hello:
    """HELLO (LINK-10 to LINK-12)."""
    if buf[pos : min(pos + 4, end)] != frames.MAGIC:
        raise ProtocolError(NOT_A_LINK, "LINK-11: the first frame does not begin with VPNR")
    if end - pos < 6:
        raise ProtocolError(MALFORMED, "LINK-10: HELLO ends before its version")
    major = int(buf[pos + 4])
    if major != frames.MAJOR:
        raise ProtocolError(
            VERSION_MISMATCH, f"LINK-12: major version {major}, here {frames.MAJOR}"
        )
    fields = Fields(buf, pos + 6, end, field_codes.HANDSHAKE)
    tls = fields.number(field_codes.TLS, 1, 0)
    if tls > 1:
        raise ProtocolError(PROTOCOL_ERROR, "LINK-9: the TLS flag is neither 0 nor 1")
    scheme = fields.number(field_codes.SCHEME, 1, frames.BASIC)
    if scheme > frames.SCRAM:
        raise ProtocolError(
            UNKNOWN_MANDATORY_FIELD, f"LINK-10: authentication scheme {scheme} is not known here"
        )
    password = fields.text(field_codes.PASSWORD)
    nonce = fields.sized(field_codes.NONCE, frames.NONCE_BYTES, frames.NONCE_BYTES, b"")
    if scheme == frames.SCRAM and (password or not nonce):
        raise ProtocolError(
            PROTOCOL_ERROR, "LINK-51: a HELLO for SCRAM has a nonce, and no password"
        )
    bridge = fields.required_text(field_codes.BRIDGE)
    if len(bridge) > limits.BRIDGE_NAME_LENGTH:
        raise ProtocolError(
            PROTOCOL_ERROR,
            f"LINK-10: a bridge's name of more than {limits.BRIDGE_NAME_LENGTH} characters",
        )
    return frames.Hello(
        fields.required_text(field_codes.ROUTER),
        bridge,
        fields.required_text(field_codes.LOCAL_VPN),
        fields.required_text(field_codes.REMOTE_VPN),
        remote_router=fields.text(field_codes.REMOTE_ROUTER),
        client_username=fields.text(field_codes.CLIENT_USERNAME),
        password=password,
        tls=tls == 1,
        features=fields.number(field_codes.FEATURES, 4, 0),
        heartbeat_ms=fields.number(field_codes.HEARTBEAT_MS, 4, 0),
        max_frame=_max_frame(fields),
        incarnation=fields.number(field_codes.INCARNATION, 8, 0),
        scheme=scheme,
        resume=fields.number(field_codes.RESUME, 1, 0) != 0,
        link_port=fields.number(field_codes.LINK_PORT, 2, 0),
        links_port=fields.number(field_codes.LINKS_PORT, 2, 0),
        nonce=nonce,
        major=major,
        minor=int(buf[pos + 5]),
    )


def challenge(buf: bytes, pos: int, end: int) -> frames.Challenge:
    """CHALLENGE (LINK-51)."""
    fields = Fields(buf, pos, end, field_codes.HANDSHAKE)
    nonce = fields.sized(field_codes.NONCE, frames.NONCE_BYTES, frames.NONCE_BYTES)
    salt = fields.sized(field_codes.SALT, frames.SALT_LEAST, frames.SALT_MOST)
    iterations = fields.number(field_codes.ITERATIONS, 4, 0)
    if not limits.SCRAM_ITERATIONS_LEAST <= iterations <= limits.SCRAM_ITERATIONS_MOST:
        raise ProtocolError(PROTOCOL_ERROR, f"LINK-51: {iterations} iterations are asked for")
    return frames.Challenge(nonce, salt, iterations)


def proof(buf: bytes, pos: int, end: int) -> frames.Proof:
    """PROOF (LINK-51)."""
    fields = Fields(buf, pos, end, field_codes.HANDSHAKE)
    return frames.Proof(fields.sized(field_codes.PROOF, frames.PROOF_BYTES, frames.PROOF_BYTES))


def welcome(buf: bytes, pos: int, end: int) -> frames.Welcome:
    """WELCOME (LINK-14)."""
    if end - pos < 2:
        raise ProtocolError(MALFORMED, "LINK-14: WELCOME ends before its version")
    major = int(buf[pos])
    if major != frames.MAJOR:
        raise ProtocolError(
            VERSION_MISMATCH, f"LINK-12: major version {major}, here {frames.MAJOR}"
        )
    fields = Fields(buf, pos + 2, end, field_codes.HANDSHAKE)
    return frames.Welcome(
        fields.required_text(field_codes.ROUTER),
        fields.required_text(field_codes.REMOTE_VPN),
        fields.required_text(field_codes.CLIENT_NAME),
        features=fields.number(field_codes.FEATURES, 4, 0),
        heartbeat_ms=fields.number(field_codes.HEARTBEAT_MS, 4, 0),
        max_frame=_max_frame(fields),
        incarnation=fields.number(field_codes.INCARNATION, 8, 0),
        resume=fields.number(field_codes.RESUME, 1, 0) != 0,
        link_port=fields.number(field_codes.LINK_PORT, 2, 0),
        links_port=fields.number(field_codes.LINKS_PORT, 2, 0),
        signature=fields.sized(field_codes.SIGNATURE, frames.PROOF_BYTES, frames.PROOF_BYTES, b""),
        major=major,
        minor=int(buf[pos + 1]),
    )


def _max_frame(fields: Fields) -> int:
    value = fields.number(field_codes.MAX_FRAME, 4, limits.LINK_FRAME_BYTES)
    if value < limits.LINK_HANDSHAKE_BYTES:
        raise ProtocolError(
            PROTOCOL_ERROR, f"LINK-15: frames of {value} bytes are too small for a link"
        )
    return value


def refusal(buf: bytes, pos: int, end: int) -> tuple[int, str, int]:
    """Code, reason and milliseconds to stay away of REFUSE and CLOSE (LINK-16)."""
    if end - pos < 4:
        raise ProtocolError(MALFORMED, "LINK-16: a refusal ends before its reason")
    after = pos + 4 + (buf[pos + 2] << 8 | buf[pos + 3])
    if after > end:
        raise ProtocolError(MALFORMED, "LINK-16: the reason runs beyond the frame")
    fields = Fields(buf, after, end, field_codes.REFUSAL)
    return (
        buf[pos] << 8 | buf[pos + 1],
        text_at(buf, pos + 4, after, "the reason"),
        fields.number(field_codes.RETRY_AFTER_MS, 4, 0),
    )
