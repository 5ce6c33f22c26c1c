"""Secrets: values that are used but never shown.

A secret is written as text, `{env: NAME}` or `{file: PATH}`. It is resolved while the configuration
is loaded, so a missing variable or file is a problem at the place where it is named. No message and
no `repr` holds the value. A `Password` is only compared, so it may also be a hash.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, final

from pydantic_core import core_schema

from vpnrouter import limits
from vpnrouter.config import passwords

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import GetCoreSchemaHandler

REVEAL: Final = "reveal_secrets"
"""Context key: `model_dump(context={REVEAL: True})` writes secrets as they were given; else
`********`."""

ENVIRONMENT: Final = "environment"
"""Context key: the variables that `{env: NAME}` looks in; without it, the process's own."""

HIDDEN: Final = "********"

_FILE_BYTES: Final = limits.PASSWORD_BYTES + 2
"""A line feed or a carriage return and a line feed may end the file."""


class Origin(NamedTuple):
    """Where a secret came from: kind `text`, `env` or `file`, and the variable or path."""

    kind: str
    name: str


AS_TEXT: Final = Origin("text", "")


class Secret:
    """A resolved secret that has to be shown to somebody else, so it must not be a hash."""

    __slots__ = ("_text", "origin")

    def __init__(self, text: str, origin: Origin = AS_TEXT) -> None:
        if not text:
            raise ValueError("must not be empty; leave the key out where none is wanted")
        if text == HIDDEN:
            raise ValueError(
                "stands for a value that was hidden when this was written; give the value"
            )
        self._check(text)
        self._text = text
        self.origin = origin

    def reveal(self) -> str:
        """The value itself."""
        return self._text

    @classmethod
    def _check(cls, text: str) -> None:
        if passwords.is_hash(text):
            raise ValueError(
                "a hash will not do here: the other side has to be shown the password itself"
            )
        if len(text.encode()) > limits.PASSWORD_BYTES:
            raise ValueError(f"longer than {limits.PASSWORD_BYTES} bytes")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.origin.kind} {self.origin.name or HIDDEN})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """How pydantic validates and writes this type."""
        return core_schema.with_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls._serialize, info_arg=True
            ),
        )

    @classmethod
    def _validate(cls, value: object, info: core_schema.ValidationInfo[Any]) -> Self:
        if isinstance(value, cls):
            return value
        context: Mapping[str, Any] = info.context or {}
        text, origin = _resolve(value, context.get(ENVIRONMENT, os.environ))
        return cls(text, origin)

    def _serialize(self, info: core_schema.SerializationInfo) -> object:
        if self.origin.kind != "text":
            return {self.origin.kind: self.origin.name}
        context: Mapping[str, Any] = info.context or {}
        return self._text if context.get(REVEAL) else HIDDEN


@final
class Password(Secret):
    """A password that is only compared with what a client gives: plain or a hash."""

    __slots__ = ()

    @property
    def is_hash(self) -> bool:
        """Whether comparing costs a key derivation (some 70 ms) or next to nothing."""
        return passwords.is_hash(self._text)

    def verify(self, given: bytes) -> bool:
        """Whether `given` is the password; takes the same time wherever the two differ."""
        return passwords.verify_password(self._text, given)

    @classmethod
    def _check(cls, text: str) -> None:
        if passwords.is_hash(text):
            passwords.check_stored(text)
        elif len(text.encode()) > limits.PASSWORD_BYTES:
            raise ValueError(f"longer than {limits.PASSWORD_BYTES} bytes")


def _resolve(value: object, environment: Mapping[str, str]) -> tuple[str, Origin]:
    """The text behind what a document holds. No message repeats the value."""
    if isinstance(value, str):
        return value, AS_TEXT
    if isinstance(value, dict) and len(value) == 1:
        kind, name = next(iter(value.items()))
        if kind in ("env", "file") and isinstance(name, str) and name:
            return (_from_environment if kind == "env" else _from_file)(name, environment)
    # ValueError, since pydantic lets a TypeError pass.
    if isinstance(value, (int, float)):
        raise ValueError("must be text: put the value in quotes")  # noqa: TRY004
    raise ValueError("must be text, {env: NAME} or {file: PATH}")


def _from_environment(name: str, environment: Mapping[str, str]) -> tuple[str, Origin]:
    text = environment.get(name)
    if text is None:
        raise ValueError(f"environment variable {name} is not set")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"environment variable {name} is not UTF-8") from None
    return text, Origin("env", name)


def _from_file(path: str, _: Mapping[str, str]) -> tuple[str, Origin]:
    """The file's one line, without its line end."""
    try:
        with Path(path).open("rb") as file:
            # A hash is longer than a password; neither needs more than this.
            raw = file.read(4 * _FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise ValueError(f"cannot read {path}: {reason}") from None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if "\n" in text:
        raise ValueError(f"{path} must hold one line")
    return text, Origin("file", path)
