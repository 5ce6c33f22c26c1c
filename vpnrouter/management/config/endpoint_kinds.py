"""What keeps messages, in the table of kinds: queues, topic endpoints, replay logs."""

from collections.abc import Mapping
from typing import Any, Final

from vpnrouter import limits
from vpnrouter.config.queue import Queue
from vpnrouter.config.replay_log import ReplayLog
from vpnrouter.config.topic_endpoint import TopicEndpoint
from vpnrouter.management.config import absent
from vpnrouter.management.config.derive import Differences
from vpnrouter.management.config.msg_vpn_kind import MSG_VPN
from vpnrouter.management.config.row import (
    CHILDREN,
    kind_of,
    name_of,
)
from vpnrouter.management.config.store import Named, Texts

_ENDPOINT_DEFAULTS: Final[Mapping[str, Any]] = {
    "egressEnabled": False,
    "ingressEnabled": False,
    "permission": "no-access",
}
_ENDPOINT_LENGTHS: Final = {
    "deadMsgQueue": (1, limits.QUEUE_NAME_LENGTH),
    "owner": (0, limits.CLIENT_USERNAME_LENGTH),
}

QUEUE: Final = kind_of(
    "queues",
    "msgVpnQueue",
    "queue",
    Named("queues"),
    name_of("queueName", limits.QUEUE_NAME_LENGTH, "Name of the queue."),
    model=Queue,
    parent=MSG_VPN,
    differences=Differences(
        defaults=_ENDPOINT_DEFAULTS,
        lengths=_ENDPOINT_LENGTHS,
        ours=frozenset({"maxSpooledMsgCount", "topicSyntax"}),
        left={"subscriptions": CHILDREN},
    ),
    absent=absent.QUEUE,
)

QUEUE_SUBSCRIPTION: Final = kind_of(
    "subscriptions",
    "msgVpnQueueSubscription",
    "subscription",
    Texts("subscriptions"),
    name_of("subscriptionTopic", limits.TOPIC_BYTES, "A topic filter of what the queue attracts."),
    parent=QUEUE,
    differences=Differences(),
    changes=False,
)

TOPIC_ENDPOINT: Final = kind_of(
    "topicEndpoints",
    "msgVpnTopicEndpoint",
    "topicEndpoint",
    Named("topic_endpoints"),
    name_of("topicEndpointName", limits.QUEUE_NAME_LENGTH, "Name of the topic endpoint."),
    model=TopicEndpoint,
    parent=MSG_VPN,
    differences=Differences(
        defaults=_ENDPOINT_DEFAULTS,
        lengths=_ENDPOINT_LENGTHS,
        ours=frozenset({"maxSpooledMsgCount"}),
    ),
    absent=absent.TOPIC_ENDPOINT,
)

REPLAY_LOG: Final = kind_of(
    "replayLogs",
    "msgVpnReplayLog",
    "replayLog",
    Named("replay_logs"),
    name_of("replayLogName", limits.REPLAY_LOG_NAME_LENGTH, "Name of the replay log."),
    model=ReplayLog,
    parent=MSG_VPN,
    differences=Differences(
        defaults={
            "egressEnabled": False,
            "ingressEnabled": False,
            "maxSpoolUsage": 0,
            "topicFilterEnabled": False,
        },
        ours=frozenset({"topicFilterTopicSyntax"}),
        left={"topic_filter.subscriptions": CHILDREN},
    ),
)

TOPIC_FILTER: Final = kind_of(
    "topicFilterSubscriptions",
    "msgVpnReplayLogTopicFilterSubscription",
    "topicFilterSubscription",
    Texts("topic_filter", "subscriptions"),
    name_of("topicFilterSubscription", limits.TOPIC_BYTES, "A topic filter of what is logged."),
    parent=REPLAY_LOG,
    differences=Differences(),
    changes=False,
)
