"""What all configuration models share, and names of things, each with the characters that the field allows.

Names of things, each with the length and the characters that the field allows.

Lengths count characters. Control characters are refused everywhere: a name stands in log lines.

The models know nothing of YAML, files or positions, and nothing of one another beyond what they
hold: a rule that spans two of them stands in a check module. Classes are built at import:
deferring that moves its 70 ms to the first load and saves nothing (measured).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from vpnrouter import limits

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _rule(
    what: str, longest: int, forbidden: str = "", pattern: str = "", says: str = ""
) -> Callable[[str], str]:
    """A check of one kind of name: 1..`longest` characters, none `forbidden`, all of `pattern`."""
    allowed = re.compile(pattern) if pattern else None

    def check(text: str) -> str:
        if not text:
            raise ValueError(f"{what} must not be empty")
        if len(text) > longest:
            raise ValueError(f"{what} has {len(text)} characters, at most {longest} are allowed")
        if _CONTROL.search(text):
            raise ValueError(f"{what} must not contain control characters")
        found = [character for character in forbidden if character in text]
        if found:
            raise ValueError(f"{what} must not contain {' '.join(found)}")
        if allowed is not None and not allowed.fullmatch(text):
            raise ValueError(f"{what} may only contain {says}")
        return text

    return check


RouterName = Annotated[
    str,
    AfterValidator(
        _rule(
            "a router name",
            limits.ROUTER_NAME_LENGTH,
            pattern=r"[A-Za-z0-9._-]+",
            says="A-Z a-z 0-9 . _ -",
        )
    ),
]
"""Also a directory name (`router=NAME`) and a word of the ready line, hence the few characters."""

MsgVpnName = Annotated[
    str, AfterValidator(_rule("a message VPN name", limits.MSG_VPN_NAME_LENGTH, "*?"))
]

BridgeName = Annotated[
    str,
    AfterValidator(
        _rule(
            "a bridge name",
            limits.BRIDGE_NAME_LENGTH,
            pattern=r'[A-Za-z0-9"~`!\\@$%|^()_+={}:,.#\-;\[\]]+',
            says='letters, digits and " ~ ` ! \\ @ $ % | ^ ( ) _ + = { } : , . # - ; [ ]',
        )
    ),
]

QueueName = Annotated[
    str, AfterValidator(_rule("a queue name", limits.QUEUE_NAME_LENGTH, "*?'<>&;"))
]

TopicEndpointName = Annotated[
    str, AfterValidator(_rule("a topic endpoint name", limits.QUEUE_NAME_LENGTH, "*?'<>&;"))
]

ReplayLogName = Annotated[
    str, AfterValidator(_rule("a replay log name", limits.REPLAY_LOG_NAME_LENGTH, "*?'<>&;"))
]

ClientUsernameName = Annotated[
    str, AfterValidator(_rule("a client username", limits.CLIENT_USERNAME_LENGTH, "*?"))
]

ClientProfileName = Annotated[
    str,
    AfterValidator(
        _rule(
            "a client profile name",
            limits.PROFILE_NAME_LENGTH,
            pattern=r"#?[A-Za-z0-9_-]+",
            says="A-Z a-z 0-9 _ - after an optional leading #",
        )
    ),
]

AclProfileName = Annotated[
    str, AfterValidator(_rule("an ACL profile name", limits.PROFILE_NAME_LENGTH))
]

TraceFilterName = Annotated[
    str, AfterValidator(_rule("a trace filter name", limits.TRACE_FILTER_NAME_LENGTH))
]

UserName = Annotated[str, AfterValidator(_rule("a user name", limits.CLIENT_USERNAME_LENGTH, ":"))]
"""A colon would end the name in HTTP basic authentication (RFC 7617, 2)."""

FilePath = Annotated[str, AfterValidator(_rule("a path", limits.PATH_LENGTH))]
"""A path as written. A relative one starts at the directory that the command was started in."""


K = TypeVar("K")
T = TypeVar("T")


def _empty_list(value: object) -> object:
    return () if value is None else value


def _empty_mapping(value: object) -> object:
    return {} if value is None else value


Many = Annotated[tuple[T, ...], Field(strict=False), BeforeValidator(_empty_list)]
"""A list in the document, a tuple in the model; the items stay strict. A key without a value is an
empty list."""

Named = Annotated[dict[K, T], BeforeValidator(_empty_mapping)]
"""Objects by name. A key without a value is an empty mapping."""


class Model(BaseModel):
    """Base of all models: no coercion, no change after loading, no unknown key.

    The string under a field is its documentation in `configs/reference.yaml`.
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    @model_validator(mode="before")
    @classmethod
    def _of_nothing(cls, value: object) -> object:
        """Take a key without a value, as in `green:`, for an object with every default."""
        return {} if value is None else value
