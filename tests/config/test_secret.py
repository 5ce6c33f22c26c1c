import pickle
from pathlib import Path

import pytest
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
    hash_password,
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


def test_plain_password_verifies() -> None:
    """A plain password is compared as it stands."""
    assert Password("hunter2").verify(b"hunter2")
    assert not Password("hunter2").is_hash


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
