"""What SASL mechanisms say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.core.scram import salted_password, verifier_of
from vpnrouter.errors import ProtocolError
from vpnrouter.wire.amqp import sasl
from vpnrouter.wire.amqp.conditions import DECODE_ERROR

NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
PROOF = b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = b"c=biws,r=" + NONCE.encode() + b",p=" + PROOF


def test_example_of_the_standard() -> None:
    """The exchange of RFC 7677, 3."""
    first = sasl.read_client_first(FIRST)
    assert (first.username, first.authorization) == ("user", "")
    assert NONCE.startswith(first.nonce)
    answer = sasl.server_first(NONCE, SALT, 4_096)
    assert answer == b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = sasl.read_client_final(FINAL, first.header)
    assert final.nonce == NONCE
    verifier = verifier_of(salted_password(b"pencil", SALT, 4_096), SALT, 4_096)
    message = sasl.scram_message(first, answer, final)
    assert verifier.accepts(final.proof, message)
    signature = sasl.server_final(verifier.signature(message))
    assert signature == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_names() -> None:
    """Commas and equals signs are written otherwise; a client may act for another."""
    first = sasl.read_client_first("y,a=b=2Cc,n==3Dä,r=x,e=1".encode())
    assert (first.authorization, first.username, first.nonce) == ("b,c", "=ä", "x")
    assert first.bare == "n==3Dä,r=x,e=1".encode()
    assert sasl.read_plain(b"who\0me@vpn\0s=,\xc3\xa4") == ("who", "me@vpn", b"s=,\xc3\xa4")


@pytest.mark.parametrize(
    "response",
    [
        *(b"", b"a", b"a\0b", b"\0\0pw", b"\0a\0b\0c", b"\xff\0a\0b", b"\0a\0\xff"),
        b"\0a\0" + bytes([97]) * (limits.SASL_BYTES + 1),
    ],
)
def test_no_plain(response: bytes) -> None:
    """What RFC 4616 does not allow."""
    with pytest.raises(ProtocolError) as raised:
        sasl.read_plain(response)
    assert raised.value.reason_code == DECODE_ERROR


@pytest.mark.parametrize(
    "first",
    [
        *(b"", b"n,,n=user", b"p=tls-exporter,,n=user,r=x", b"n,,m=x,n=user,r=x", b"n,,n=,r=x"),
        *(b"n,b,n=user,r=x", b"n,,n=us=er,r=x", b"n,,n=user,r=", b"n,,n=user,r=\x7f", b"\xff"),
    ],
)
def test_no_first_message(first: bytes) -> None:
    """What RFC 5802 does not allow, and channel binding, which is not offered."""
    with pytest.raises(ProtocolError):
        sasl.read_client_first(first)


@pytest.mark.parametrize(
    "final",
    [
        *(b"", FINAL[:-1], FINAL[:-4], b"c=biws,p=" + PROOF, FINAL.replace(b"biws", b"eSws")),
        *(FINAL.replace(b"biws", b"*"), FINAL.replace(b",r=", b",q="), FINAL + b"\xff"),
    ],
)
def test_no_last_message(final: bytes) -> None:
    """Neither, and another header than that of the first message."""
    with pytest.raises(ProtocolError):
        sasl.read_client_final(final, b"n,,")


@given(st.binary(max_size=100))
def test_any_bytes(data: bytes) -> None:
    """The one error or a value."""
    for read in (
        sasl.read_plain,
        sasl.read_client_first,
        lambda one: sasl.read_client_final(one, b"n,,"),
    ):
        for given_bytes in (data, b"n,,n=" + data, b"c=biws,r=" + data):
            try:
                read(given_bytes)
            except ProtocolError:
                continue
