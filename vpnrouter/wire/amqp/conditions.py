"""Numbers the error conditions of AMQP (2.8.15 to 2.8.18, 4.5.8), so that a ProtocolError can carry one."""

from __future__ import annotations

from typing import Final

INTERNAL_ERROR: Final = 1
NOT_FOUND: Final = 2
UNAUTHORIZED_ACCESS: Final = 3
DECODE_ERROR: Final = 4
RESOURCE_LIMIT_EXCEEDED: Final = 5
NOT_ALLOWED: Final = 6
INVALID_FIELD: Final = 7
NOT_IMPLEMENTED: Final = 8
RESOURCE_LOCKED: Final = 9
PRECONDITION_FAILED: Final = 10
RESOURCE_DELETED: Final = 11
ILLEGAL_STATE: Final = 12
FRAME_SIZE_TOO_SMALL: Final = 13
CONNECTION_FORCED: Final = 14
FRAMING_ERROR: Final = 15
CONNECTION_REDIRECT: Final = 16
WINDOW_VIOLATION: Final = 17
ERRANT_LINK: Final = 18
HANDLE_IN_USE: Final = 19
UNATTACHED_HANDLE: Final = 20
DETACH_FORCED: Final = 21
TRANSFER_LIMIT_EXCEEDED: Final = 22
MESSAGE_SIZE_EXCEEDED: Final = 23
LINK_REDIRECT: Final = 24
STOLEN: Final = 25
UNKNOWN_ID: Final = 26
TRANSACTION_ROLLBACK: Final = 27
TRANSACTION_TIMEOUT: Final = 28

CONDITIONS: Final = {
    INTERNAL_ERROR: "amqp:internal-error",
    NOT_FOUND: "amqp:not-found",
    UNAUTHORIZED_ACCESS: "amqp:unauthorized-access",
    DECODE_ERROR: "amqp:decode-error",
    RESOURCE_LIMIT_EXCEEDED: "amqp:resource-limit-exceeded",
    NOT_ALLOWED: "amqp:not-allowed",
    INVALID_FIELD: "amqp:invalid-field",
    NOT_IMPLEMENTED: "amqp:not-implemented",
    RESOURCE_LOCKED: "amqp:resource-locked",
    PRECONDITION_FAILED: "amqp:precondition-failed",
    RESOURCE_DELETED: "amqp:resource-deleted",
    ILLEGAL_STATE: "amqp:illegal-state",
    FRAME_SIZE_TOO_SMALL: "amqp:frame-size-too-small",
    CONNECTION_FORCED: "amqp:connection:forced",
    FRAMING_ERROR: "amqp:connection:framing-error",
    CONNECTION_REDIRECT: "amqp:connection:redirect",
    WINDOW_VIOLATION: "amqp:session:window-violation",
    ERRANT_LINK: "amqp:session:errant-link",
    HANDLE_IN_USE: "amqp:session:handle-in-use",
    UNATTACHED_HANDLE: "amqp:session:unattached-handle",
    DETACH_FORCED: "amqp:link:detach-forced",
    TRANSFER_LIMIT_EXCEEDED: "amqp:link:transfer-limit-exceeded",
    MESSAGE_SIZE_EXCEEDED: "amqp:link:message-size-exceeded",
    LINK_REDIRECT: "amqp:link:redirect",
    STOLEN: "amqp:link:stolen",
    UNKNOWN_ID: "amqp:transaction:unknown-id",
    TRANSACTION_ROLLBACK: "amqp:transaction:rollback",
    TRANSACTION_TIMEOUT: "amqp:transaction:timeout",
}
"""The symbol of each."""
