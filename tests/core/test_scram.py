"""SCRAM-SHA-256 against the example of its RFC, and what it is about on a link."""

import base64

import pytest

from vpnrouter.core.credentials import ClientUsername, Credentials
from vpnrouter.core.scram import auth_message, proof_of, salted_password, stored_text, verifier_of

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
MESSAGE = (
    b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
)


def test_the_example_of_the_rfc() -> None:
    """RFC 7677, 3: the proof and the server's signature of user and pencil."""
    salted = salted_password(b"pencil", SALT, 4096)
    verifier = verifier_of(salted, SALT, 4096)
    proof = proof_of(salted, MESSAGE)
    assert base64.b64encode(proof) == b"dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert verifier.accepts(proof, MESSAGE)
    signature = base64.b64encode(verifier.signature(MESSAGE))
    assert signature == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_proof_is_good_for_one_password_and_one_message() -> None:
    """Another password, a message that differs by a byte, a proof that does: none is accepted."""
    verifier = verifier_of(salted_password(b"right", SALT, 4096), SALT, 4096)
    good = proof_of(salted_password(b"right", SALT, 4096), MESSAGE)
    assert not verifier.accepts(good, MESSAGE + b"x")
    assert not verifier.accepts(bytes(32), MESSAGE)
    assert not verifier.accepts(good[:-1] + bytes((good[-1] ^ 1,)), MESSAGE)
    assert not verifier.accepts(proof_of(salted_password(b"wrong", SALT, 4096), MESSAGE), MESSAGE)


def test_each_part_counts_in_its_place() -> None:
    """What is said cannot be taken apart in another way."""
    said = {
        auth_message(b"ab", b"c", b"", b""),
        auth_message(b"a", b"bc", b"", b""),
        auth_message(b"ab", b"c", b"d", b""),
        auth_message(b"ab", b"c", b"", b"d"),
    }
    assert len(said) == 4


@pytest.mark.parametrize("stored", ["plain", "scram"])
def test_an_unknown_name_looks_like_a_known_one(stored: str) -> None:
    """An unknown name gets a challenge like a known one, each time with the same salt, and no proof is accepted."""
    verifier = verifier_of(salted_password(b"right", SALT, 5000), SALT, 5000)
    password = "right" if stored == "plain" else stored_text(verifier)
    credentials = Credentials(True, [ClientUsername("known", password)], b"secret")
    decoy = credentials.decoy("nobody")
    again = credentials.decoy("nobody")
    other = credentials.decoy("another")
    if stored == "plain":
        assert credentials.verifier(decoy) is None
        assert (
            credentials.salt_of(decoy) == credentials.salt_of(again) != credentials.salt_of(other)
        )
        assert len(credentials.salt_of(decoy)) == 16
        return
    made, same = credentials.verifier(decoy), credentials.verifier(again)
    assert made is not None
    assert same is not None
    assert (made.iterations, len(made.salt), made.salt) == (5000, 16, same.salt)
    assert not made.accepts(proof_of(salted_password(b"right", made.salt, 5000), b"m"), b"m")
