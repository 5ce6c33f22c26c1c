"""Secrets and password hashes."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vpnrouter.config.model import Model
from vpnrouter.config.secrets import (
    AS_TEXT,
    ENVIRONMENT,
    HIDDEN,
    REVEAL,
    Origin,
    Password,
    Secret,
    check_stored,
    hash_password,
    is_hash,
    parse_hash,
    scram_verifier,
    verify_password,
)

HASH = hash_password("hunter2", bytes(8), ln=4, r=1)


class Holder(Model):
    """A model with both kinds."""

    secret: Secret | None = None
    password: Password | None = None


def secret(value: object, environment: dict[str, str] | None = None) -> Secret:
    """Validate one secret."""
    holder = Holder.model_validate({"secret": value}, context={ENVIRONMENT: environment or {}})
    assert holder.secret is not None
    return holder.secret


def test_text() -> None:
    """Text stands for itself."""
    assert secret("hunter2").reveal() == "hunter2"
    assert secret("hunter2").origin == AS_TEXT


def test_environment() -> None:
    """`{env: NAME}` is the variable's value."""
    found = secret({"env": "PW"}, {"PW": "hunter2"})
    assert found.reveal() == "hunter2"
    assert found.origin == Origin("env", "PW")


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_file(tmp_path: Path, end: str) -> None:
    """`{file: PATH}` is the file's one line without its end."""
    path = tmp_path / "pw"
    path.write_bytes(f"hunter2{end}".encode())
    assert secret({"file": str(path)}).reveal() == "hunter2"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"one\ntwo\n", "must hold one line"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"", "must not be empty"),
        (b"x" * 129, "longer than 128 bytes"),
        (b"x" * 100_000, "longer than 128 bytes"),
    ],
)
def test_bad_file(tmp_path: Path, content: bytes, reason: str) -> None:
    """A file that holds no usable secret is refused by name."""
    path = tmp_path / "pw"
    path.write_bytes(content)
    with pytest.raises(ValidationError, match=reason):
        secret({"file": str(path)})


def test_endless_file() -> None:
    """A file without an end is read no further than a secret can be long."""
    with pytest.raises(ValidationError, match="longer than 128 bytes"):
        secret({"file": "/dev/zero"})


@pytest.mark.parametrize(
    "value",
    [1, 1.5, True, [], {}, {"env": ""}, {"env": 3}, {"vault": "x"}, {"env": "a", "file": "b"}],
)
def test_other_forms(value: object) -> None:
    """Every other form is refused, and the message says which there are."""
    with pytest.raises(ValidationError, match="must be text"):
        secret(value)


def test_environment_that_is_not_text() -> None:
    """A variable with bytes that are not UTF-8 is refused by name, not by value."""
    with pytest.raises(ValidationError, match="variable PW is not UTF-8") as error:
        secret({"env": "PW"}, {"PW": "hunter2\udcff"})
    assert "hunter2" not in str(error.value)


def test_hash_only_where_it_is_compared() -> None:
    """A hash is a good password and no good secret."""
    holder = Holder.model_validate({"password": HASH})
    assert holder.password is not None
    assert holder.password.is_hash
    assert holder.password.verify(b"hunter2")
    assert not holder.password.verify(b"hunter3")
    with pytest.raises(ValidationError, match="a hash will not do here"):
        secret(HASH)


def test_never_shown() -> None:
    """Neither repr, str, format nor a dump shows the value."""
    holder = Holder.model_validate({"secret": "hunter2", "password": HASH})
    shown = [repr(holder), str(holder), f"{holder.secret}", repr(holder.model_dump())]
    shown += [str(holder.model_dump(mode="json")), holder.model_dump_json()]
    for text in shown:
        assert "hunter2" not in text
        assert "scrypt" not in text
        assert HIDDEN in text


def test_dump_can_be_read_back() -> None:
    """A dump names variables and files; values only where they are asked for."""
    environment = {"PW": "hunter2"}
    holder = Holder.model_validate(
        {"secret": {"env": "PW"}, "password": HASH}, context={ENVIRONMENT: environment}
    )
    dumped = holder.model_dump(context={REVEAL: True})
    assert dumped == {"secret": {"env": "PW"}, "password": HASH}
    assert Holder.model_validate(dumped, context={ENVIRONMENT: environment}) == holder


def test_hidden_value_is_not_a_password() -> None:
    """What a dump shows instead of a value is not taken for one."""
    with pytest.raises(ValidationError, match="hidden when this was written"):
        secret(HIDDEN)


def test_equality() -> None:
    """Secrets are equal when their values are; a password is no secret."""
    assert Secret("a") == Secret("a", Origin("env", "X"))
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert Secret("a") != Password("a")
    assert pickle.loads(pickle.dumps(Secret("a"))) == Secret("a")  # noqa: S301 - made right here


SALT = bytes(range(16))
CHEAP = {"ln": 4, "r": 1}


def test_known_hash() -> None:
    """The string holds exactly what scrypt makes of password, salt and parameters."""
    stored = hash_password("pleaseletmein", b"SodiumChloride", ln=14)
    # RFC 7914, 12: the third test vector, its first 32 bytes.
    vector = "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
    assert parse_hash(stored).digest.hex() == vector
    assert parse_hash(stored)[:4] == (14, 8, 1, b"SodiumChloride")


def test_defaults() -> None:
    """A new hash costs 32 MiB, as the reference says."""
    stored = hash_password("pw", SALT)
    assert stored.startswith("scrypt$ln=15,r=8,p=1$AAECAwQFBgcICQoLDA0ODw$")
    assert verify_password(stored, b"pw")


NO_NUL = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30)


@given(NO_NUL, st.binary(min_size=8, max_size=64), st.binary(max_size=30))
def test_only_the_password_verifies(text: str, salt: bytes, other: bytes) -> None:
    """A hash verifies the password that it was made of and no other."""
    stored = hash_password(text, salt, **CHEAP)
    assert is_hash(stored)
    assert verify_password(stored, text.encode())
    assert verify_password(stored, other) == (other == text.encode())


@pytest.mark.parametrize("given_", [b"", b"secre", b"secret ", b"Secret", b"\xff"])
def test_plain_passwords_compare_whole(given_: bytes) -> None:
    """A plain password is compared byte by byte, and wrong bytes are no error."""
    assert verify_password("secret", b"secret")
    assert not verify_password("secret", given_)


@pytest.mark.parametrize(
    "stored",
    [
        "scrypt$",
        "scrypt$ln=15,r=8,p=1$short$aGFzaGhhc2hoYXNoaGFzaA",
        "scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ=$aGFzaGhhc2hoYXNoaGFzaA",
        "scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$aGFzaA",
        "scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA$",
        "scrypt$ln=15,r=8,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA\n",
        "scrypt$ln=0,r=8,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA",
        "scrypt$ln=15,r=0,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA",
        "scrypt$ln=15,r=8,p=0$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA",
        "scrypt$ln=15,r=8,p=1$c2FsdHNhbHQx0$aGFzaGhhc2hoYXNoaGFzaA",
        "scrypt$LN=15,r=8,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA",
    ],
)
def test_malformed(stored: str) -> None:
    """A string that begins like a hash and is none is refused, and the message does not show it."""
    with pytest.raises(ValueError, match="password hash") as error:
        parse_hash(stored)
    assert "c2Fsd" not in str(error.value)


@pytest.mark.parametrize(
    "cost", ["ln=40,r=8,p=1", "ln=18,r=8,p=1", "ln=17,r=9,p=1", "ln=99,r=99,p=1"]
)
def test_hostile_memory(cost: str) -> None:
    """A hash that asks for more memory than the bound is refused when it is read."""
    with pytest.raises(ValueError, match="needs more than 128 MiB"):
        parse_hash(f"scrypt${cost}$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA")


def test_hostile_time() -> None:
    """A hash that asks for more passes than the bound is refused when it is read."""
    with pytest.raises(ValueError, match="p from 1 to 4"):
        parse_hash("scrypt$ln=15,r=8,p=5$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA")


def test_costliest_hash_still_runs() -> None:
    """What the bounds allow can be computed: the memory bound leaves room for the library's own."""
    assert hash_password("pw", SALT, ln=17).startswith("scrypt$ln=17,r=8,p=1$")


def test_nul_is_not_padding() -> None:
    """The hash of a password does not verify the same one with a NUL behind it."""
    assert not verify_password(hash_password("pw", SALT, **CHEAP), b"pw\0")
    with pytest.raises(ValueError, match="has no NUL"):
        hash_password("pw\0", SALT, **CHEAP)


def test_password_and_salt_bounds() -> None:
    """What cannot be configured or parsed again cannot be hashed either."""
    assert hash_password("é" * 64, SALT, **CHEAP)
    with pytest.raises(ValueError, match="at most 128 bytes"):
        hash_password("é" * 64 + "x", SALT, **CHEAP)
    for salt in (b"7 bytes", bytes(65)):
        with pytest.raises(ValueError, match="has the form"):
            hash_password("pw", salt, **CHEAP)


@pytest.mark.parametrize("text", ["secret", "", "pässwörd", "x" * 128])
def test_a_verifier_for_scram_is_a_password(text: str) -> None:
    """What `hash-password --scram` makes is verified like any hash, and tells nothing but its own password."""
    stored = scram_verifier(text, SALT, 4_096)
    assert is_hash(stored)
    check_stored(stored)
    assert verify_password(stored, text.encode())
    assert not verify_password(stored, text.encode() + b"\0")
    assert not verify_password(stored, b"other")
    assert stored.startswith("scram-sha-256$4096$")


@pytest.mark.parametrize("iterations", [0, 4_095, 600_001, 9_999_999])
def test_iterations_out_of_bounds(iterations: int) -> None:
    """A verifier that is too cheap, or too dear, is refused where it is made and where it is read."""
    with pytest.raises(ValueError, match="iterations from 4,096 to 600,000"):
        scram_verifier("x", SALT, iterations)
    stored = scram_verifier("x", SALT, 4_096).replace("$4096$", f"${iterations}$")
    with pytest.raises(ValueError, match="iterations from 4,096 to 600,000"):
        check_stored(stored)


@pytest.mark.parametrize("cut", ["", "scram-sha-256$4096$c2FsdA", "scram-sha-256$x$y$z$w"])
def test_what_is_no_verifier(cut: str) -> None:
    """A damaged verifier is refused, and the error does not repeat it."""
    with pytest.raises(ValueError, match="has the form") as caught:
        check_stored(cut or "scram-sha-256$")
    assert not cut or cut not in str(caught.value)


def test_no_verifier_of_a_password_with_nul() -> None:
    """A password with NUL gets no verifier: another password would match it too."""
    with pytest.raises(ValueError, match="NUL"):
        scram_verifier("a\0", SALT)
