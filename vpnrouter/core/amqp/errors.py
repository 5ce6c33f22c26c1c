"""Puts the reasons for which something is refused under the error conditions of AMQP (2.8.15 to 2.8.18)."""

from __future__ import annotations

from typing import Final

from vpnrouter.core.guaranteed import refusals
from vpnrouter.wire.amqp import conditions
from vpnrouter.wire.amqp.conditions import CONDITIONS
from vpnrouter.wire.amqp.performatives import Error
from vpnrouter.wire.mqtt import reason

_OF_REASONS: Final[dict[str, int]] = {
    refusals.QUEUE_NOT_FOUND: conditions.NOT_FOUND,
    refusals.UNKNOWN_QUEUE: conditions.NOT_FOUND,
    refusals.UNKNOWN_TOPIC_ENDPOINT: conditions.NOT_FOUND,
    refusals.NO_SUBSCRIPTION_MATCH: conditions.NOT_FOUND,
    refusals.ACL_DENIED: conditions.UNAUTHORIZED_ACCESS,
    refusals.PERMISSION_DENIED: conditions.UNAUTHORIZED_ACCESS,
    refusals.TOO_LARGE: conditions.MESSAGE_SIZE_EXCEEDED,
    refusals.INVALID_SELECTOR: conditions.INVALID_FIELD,
    refusals.QUEUE_SHUTDOWN: conditions.NOT_ALLOWED,
    refusals.TOPIC_ENDPOINT_SHUTDOWN: conditions.NOT_ALLOWED,
    refusals.ENDPOINT_SHUTDOWN: conditions.NOT_ALLOWED,
    refusals.NOT_CONFIGURED: conditions.RESOURCE_DELETED,
    refusals.MAKER_GONE: conditions.RESOURCE_DELETED,
    refusals.SUBSCRIPTION_ENDED: conditions.RESOURCE_DELETED,
    refusals.ALREADY_BOUND: conditions.NOT_ALLOWED,
    refusals.SUBSCRIPTION_MISMATCH: conditions.NOT_ALLOWED,
}

_OF_CODES: Final[dict[int, int]] = {
    reason.NOT_AUTHORIZED: conditions.UNAUTHORIZED_ACCESS,
    reason.BAD_USER_NAME_OR_PASSWORD: conditions.UNAUTHORIZED_ACCESS,
    reason.QUOTA_EXCEEDED: conditions.RESOURCE_LIMIT_EXCEEDED,
    reason.TOPIC_FILTER_INVALID: conditions.INVALID_FIELD,
    reason.TOPIC_NAME_INVALID: conditions.INVALID_FIELD,
}


def condition_of(text: str, code: int = 0) -> int:
    """Return the condition for a refusal: by its text, which may go on behind a colon, else by its code of MQTT 5.

    All others are limits of some kind.
    """
    found = _OF_REASONS.get(text) or _OF_REASONS.get(text.partition(": ")[0])
    found = found or _OF_CODES.get(code)
    return conditions.RESOURCE_LIMIT_EXCEEDED if found is None else found


TEXT_BYTES: Final = 300
"""Bytes of the description of an error, which fits into the smallest frame then; a topic in it may be long."""


def error(condition: int, text: str) -> Error:
    """Return the error to send."""
    if len(text) * 4 > TEXT_BYTES:
        text = text.encode("utf-8", "replace")[:TEXT_BYTES].decode("utf-8", "ignore")
    return Error(CONDITIONS.get(condition, CONDITIONS[conditions.INTERNAL_ERROR]), text)
