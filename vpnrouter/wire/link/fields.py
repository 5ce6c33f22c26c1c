"""Encodes the fields of handshakes and of BIND: type byte, length, value (LINK-8, LINK-9)."""

from typing import Final, final

from vpnrouter import limits
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.link.codes import (
    MALFORMED,
    MANDATORY,
    PROTOCOL_ERROR,
    UNKNOWN_MANDATORY_FIELD,
)
from vpnrouter.wire.varint import read_varint, varint

_NUMBER: Final = MANDATORY - 1


def text_at(buf: bytes, start: int, end: int, what: str) -> str:
    """The text in `buf[start:end]`. Raises ProtocolError(0x81): too long, not UTF-8, or with U+0000
    (LINK-7).
    """
    if end - start > limits.LINK_TEXT_BYTES:
        raise ProtocolError(
            MALFORMED, f"LINK-7: {what} is longer than {limits.LINK_TEXT_BYTES} bytes"
        )
    return utf8(buf[start:end], what)


def utf8(raw: bytes, what: str) -> str:
    """Decode UTF-8 without U+0000. Raises ProtocolError(0x81) (LINK-7)."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError(MALFORMED, f"LINK-7: {what} is not UTF-8") from None
    if "\0" in text:
        raise ProtocolError(MALFORMED, f"LINK-7: {what} contains U+0000")
    return text


def text_field(number: int, text: str) -> bytes:
    """A field with a text; ValueError above LINK_TEXT_BYTES, which no peer would take."""
    raw = text.encode("utf-8")
    if len(raw) > limits.LINK_TEXT_BYTES:
        raise ValueError(f"text of {len(raw)} bytes in link field {number}")
    return bytes((number,)) + varint(len(raw)) + raw


def data_field(number: int, data: bytes) -> bytes:
    """A field with bytes, at most 127."""
    return bytes((number, len(data))) + data


def number_field(number: int, value: int, size: int) -> bytes:
    """A field with an unsigned number of `size` bytes."""
    return bytes((number, size)) + value.to_bytes(size, "big")


@final
class Fields:
    """The fields of one frame, taken apart; reading checks each value.

    Raises ProtocolError: 0x81 when they cannot be taken apart, 0xC1 for an unknown number with the
    mandatory bit, 0x82 for a known number that comes twice. `known` are the numbers of this frame kind.
    """

    __slots__ = ("_buf", "_places")

    def __init__(self, buf: bytes, pos: int, end: int, known: frozenset[int]) -> None:
        self._buf = buf
        places: dict[int, tuple[int, int]] = {}
        while pos < end:
            kind = buf[pos]
            length, pos = read_varint(buf, pos + 1, end)
            if length > end - pos:
                raise ProtocolError(MALFORMED, "LINK-8: a field runs beyond its frame")
            number = kind & _NUMBER
            if number in known:
                if number in places:
                    raise ProtocolError(PROTOCOL_ERROR, f"LINK-9: field {number} comes twice")
                places[number] = (pos, pos + length)
            elif kind & MANDATORY:
                raise ProtocolError(
                    UNKNOWN_MANDATORY_FIELD, f"LINK-8: field {number} must be understood and is not"
                )
            pos += length
        self._places = places

    def text(self, number: int) -> str:
        """The text of a field, "" where it is absent."""
        place = self._places.get(number)
        if place is None:
            return ""
        return text_at(self._buf, place[0], place[1], f"field {number}")

    def data(self, number: int) -> bytes:
        """The bytes of a field, b"" where it is absent."""
        place = self._places.get(number)
        if place is None:
            return b""
        return self._buf[place[0] : place[1]]

    def sized(self, number: int, least: int, most: int, default: bytes | None = None) -> bytes:
        """The bytes of a field, from `least` to `most` of them; ProtocolError(0x82) where it is missing and there is
        no default, and (0x81) on another size.
        """
        place = self._places.get(number)
        if place is None:
            if default is None:
                raise ProtocolError(PROTOCOL_ERROR, f"LINK-9: field {number} is missing")
            return default
        if not least <= place[1] - place[0] <= most:
            raise ProtocolError(
                MALFORMED, f"LINK-9: field {number} is not {least} to {most} bytes long"
            )
        return self._buf[place[0] : place[1]]

    def required_text(self, number: int) -> str:
        """The text of a field that must be there and not empty; ProtocolError(0x82) (LINK-9)."""
        text = self.text(number)
        if not text:
            raise ProtocolError(PROTOCOL_ERROR, f"LINK-9: field {number} is missing")
        return text

    def number(self, number: int, size: int, default: int) -> int:
        """The unsigned number of `size` bytes in a field, or `default`; ProtocolError(0x81) on
        another size.
        """
        place = self._places.get(number)
        if place is None:
            return default
        if place[1] - place[0] != size:
            raise ProtocolError(MALFORMED, f"LINK-9: field {number} is not {size} bytes long")
        return int.from_bytes(self._buf[place[0] : place[1]], "big")
