"""Every exception the project raises on purpose.

    VpnrouterError
    ├── TopicError            a topic or topic filter breaks the grammar
    ├── SelectorError         a message selector breaks the grammar; carries the position
    ├── ProtocolError         the peer broke the wire protocol; carries the reason code to answer with
    ├── ConfigError           a configuration is refused; carries every problem found
    ├── Refused               a request is well formed but not allowed; carries the field's reason string
    ├── RequestError          a management request cannot be answered; carries the field's code and HTTP status
    ├── SpoolError            the store of guaranteed messages cannot do what was asked; carries why
    ├── TransformError        a step cannot change a message as it is to; nothing is wrong with the router
    └── OperationError        something outside (file, address, process) made an operation impossible

Anything else that escapes is a bug. Classes carry fields for machines; `str()` is for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class VpnrouterError(Exception):
    """Base of all errors raised on purpose."""


class TopicError(VpnrouterError):
    """A topic or a topic filter breaks a rule of the topic grammar.

    `clause` is the rule's id in docs/topics.md (for example "TOPIC-7").
    """

    def __init__(self, message: str, clause: str = "") -> None:
        super().__init__(message)
        self.clause = clause


class SelectorError(VpnrouterError):
    """A message selector that breaks a rule of docs/selectors.md.

    `position` is where, in characters of the selector from 1; the text begins with it.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"position {position}: {message}")
        self.position = position


class ProtocolError(VpnrouterError):
    """The peer sent bytes that its protocol forbids.

    `reason_code` is what to answer with (MQTT 5 reason code, or a link close code), 0..255.
    """

    def __init__(self, reason_code: int, message: str) -> None:
        super().__init__(message)
        self.reason_code = reason_code


class ConfigError(VpnrouterError):
    """A configuration is refused.

    `problems` holds one line per finding, each beginning with FILE:LINE:COLUMN.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Refused(VpnrouterError):
    """A well-formed request that is not allowed.

    `reason` is the field's reason string, for example "403 Publish ACL Denied", which the peer is told. `why` is
    for events and logs: the same, or what the peer has no right to know.
    """

    def __init__(self, reason: str, reason_code: int = 0x87, why: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.reason_code = reason_code
        self.why = why or reason


class RequestError(VpnrouterError):
    """A request to the management API that cannot be answered.

    `code` and `status` are the field's number and name for it, `http_status` the response code.
    """

    def __init__(self, code: int, status: str, http_status: int, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.status = status
        self.http_status = http_status


class SpoolError(VpnrouterError):
    """The store of guaranteed messages cannot do what was asked; nothing was lost silently.

    `reason` is one word for machines: "full" (no space, or a quota), "locked" (another process has it),
    "denied" (permissions), "corrupt" (what was stored reads back wrong), "gone" (a file that was there while the
    store was open is not), "version" (another format),
    "missing" (a store that should be there is not), "closed", or "broken" for anything else. "full" and
    "broken" may pass: the same commit may be tried again.
    """

    def __init__(self, message: str, reason: str = "broken") -> None:
        super().__init__(message)
        self.reason = reason


class TransformError(VpnrouterError):
    """A step cannot change a message as it is to; nothing is wrong with the router."""


class OperationError(VpnrouterError):
    """A file, an address or a process outside the project made an operation impossible.

    `lines` are what to show: the message, and what belongs to it line by line, such as files.
    """

    def __init__(self, message: str, more: Sequence[str] = ()) -> None:
        self.lines = (message, *(f"  {line}" for line in more))
        super().__init__("\n".join(self.lines))
