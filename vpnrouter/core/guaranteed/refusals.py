"""Names the reasons for which guaranteed messages and consumers are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.credentials import NOT_AUTHORIZED
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from vpnrouter.core.credentials import ClientUsername


SPOOL_OVER_QUOTA: Final = "503 Spool Over Quota"
MAX_MESSAGE_USAGE: Final = "503 Max message usage exceeded"
LOW_PRIORITY: Final = "503 Low Priority Msg Congestion"
NO_SUBSCRIPTION_MATCH: Final = "503 No Subscription Match"
QUEUE_SHUTDOWN: Final = "503 Queue Shutdown"
TOPIC_ENDPOINT_SHUTDOWN: Final = "503 Durable Topic Endpoint Shutdown"
ENDPOINT_SHUTDOWN: Final = "503 Endpoint Shutdown"
QUEUE_NOT_FOUND: Final = "400 Queue Not Found"
TOO_LARGE: Final = "400 Document Is Too Large"
ACL_DENIED: Final = "403 Publish ACL Denied"
SERVICE_UNAVAILABLE: Final = "503 Service Unavailable"
UNKNOWN_QUEUE: Final = "503 Unknown Queue"
UNKNOWN_TOPIC_ENDPOINT: Final = "503 Unknown Durable Topic Endpoint"
QUEUE_BINDS: Final = "503 Max clients exceeded for Queue"
TOPIC_ENDPOINT_BINDS: Final = "503 Max clients exceeded for durable Topic Endpoint"
PERMISSION_DENIED: Final = "403 Permission Denied"
ALREADY_BOUND: Final = "400 Already Bound"
INVALID_SELECTOR: Final = "406 Invalid Selector"
TOO_MANY_FLOWS: Final = "503 Max Egress Flows Exceeded"
TOO_MANY_INGRESS_FLOWS: Final = "503 Max Ingress Flows Exceeded"
PUBLISH_FAILURE: Final = "503 Message Publish Failure"
TOO_MANY_ENDPOINTS: Final = "503 Endpoint Max Exceeded"
SUBSCRIPTION_MISMATCH: Final = "503 Subscription Does Not Match"
SESSION_ENDED: Final = "503 MQTT Session Ended"
SUBSCRIPTION_ENDED: Final = "503 Subscription Ended"
NOT_CONFIGURED: Final = "503 Queue Shutdown: it is not configured any more"
MAKER_GONE: Final = "503 Queue Shutdown: the link that made it has ended"

REPLAY_DISABLED: Final = "503 Replay Disabled"
REPLAY_TIME: Final = "503 Replay Start Time Not Available"
REPLAY_MESSAGE: Final = "503 Replay Message Unavailable"
REPLAY_LOG_MODIFIED: Final = "503 Replay Log Modified"
REPLAY_CANCELLED: Final = "503 Replay Cancelled"
REPLAY_STARTED: Final = "503 Replay Started"
REPLAY_RESOURCES: Final = "503 Out of Replay Resources"
REPLAY_NON_EXCLUSIVE: Final = "403 Client Initiated Replay Not Allowed on Non-Exclusive Queue"
REPLAY_BROWSER: Final = "403 Client Initiated Replay Not Allowed on Browser Flow"
REPLAY_INACTIVE: Final = "403 Client Initiated Replay Not Allowed on Inactive Flow"
REPLAY_TEMPORARY: Final = "403 Replay Not Supported on Temporary Queue"

NOT_FOUND: Final = 0x8F
QUOTA_EXCEEDED: Final = 0x97
UNAVAILABLE: Final = 0x83
"""MQTT 5 reason codes: implementation specific error for what is shut down."""

DISCARD_NAMES: Final[dict[str, str]] = {
    SPOOL_OVER_QUOTA: "max-msg-spool-usage-exceeded",
    MAX_MESSAGE_USAGE: "max-msg-usage-exceeded",
    LOW_PRIORITY: "low-priority-msg-congestion",
    QUEUE_SHUTDOWN: "destination-group-error",
    TOPIC_ENDPOINT_SHUTDOWN: "destination-group-error",
    ENDPOINT_SHUTDOWN: "destination-group-error",
    QUEUE_NOT_FOUND: "queue-not-found",
    TOO_LARGE: "max-msg-size-exceeded",
    SERVICE_UNAVAILABLE: "spool-to-disk-fail",
    NO_SUBSCRIPTION_MATCH: "no-subscription-match",
}
"""The reason told to a publisher → the name under which the discard is counted."""


TEMPORARY: Final = "_P2P/"
"""What the names of temporary queues and topics begin with; router, client and a number follow. Everybody may send to
such a queue, so that everybody may learn that it is gone."""


def may_learn(username: ClientUsername | None) -> bool:
    """Return whether a client username may learn that a queue or topic endpoint does not exist.

    To all others a missing one looks like one that is closed to them, or they would find out the names.
    """
    return username is None or username.guaranteed_endpoint_permission_override_enabled


def not_there(kind: int, username: ClientUsername | None, name: str = "") -> Refused:
    """Return the refusal for a consumer that `username` wants at an endpoint that does not exist."""
    unknown = UNKNOWN_QUEUE if kind == QUEUE else UNKNOWN_TOPIC_ENDPOINT
    if may_learn(username) or (kind == QUEUE and name.startswith(TEMPORARY)):
        return Refused(unknown, NOT_FOUND)
    return Refused(PERMISSION_DENIED, NOT_AUTHORIZED, unknown)
