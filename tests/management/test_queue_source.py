import pytest

from vpnrouter.management.responses import names_of
from vpnrouter.management.status.queues import (
    FlowStatus,
    MsgStatus,
    QueueStatus,
)

QUEUE_NAMES = """
    accessType bindRequestCount bindSuccessCount deadMsgQueue deletedMsgCount durable egressEnabled
    disabledDiscardedMsgCount highestMsgId ingressEnabled lastReplayFailureReason lastSpooledMsgId
    lowPriorityMsgCongestionDiscardedMsgCount lowestMsgId maxBindCount
    maxBindCountExceededBindFailureCount maxDeliveredUnackedMsgsPerFlow maxMsgSize
    maxMsgSizeExceededDiscardedMsgCount maxMsgSpoolUsage maxMsgSpoolUsageExceededDiscardedMsgCount
    maxRedeliveryCount maxRedeliveryExceededDiscardedMsgCount
    maxRedeliveryExceededToDmqFailedMsgCount maxRedeliveryExceededToDmqMsgCount maxTtl
    maxTtlExpiredDiscardedMsgCount maxTtlExpiredToDmqFailedMsgCount maxTtlExpiredToDmqMsgCount
    msgSpoolPeakUsage msgSpoolUsage msgVpnName otherBindFailureCount owner partitionCount permission
    queueName redeliveredMsgCount rejectMsgToSenderOnDiscardBehavior replayFailureCount
    replayStartCount replayState replaySuccessCount respectMsgPriorityEnabled respectTtlEnabled
    spooledByteCount spooledMsgCount txUnackedMsgCount
"""
FLOW_NAMES = """
    activityState clientName flowId unackedMsgCount usedWindowSize windowClosedCount windowSize
"""
MSG_NAMES = """
    contentSize dmqEligible expiryTime msgId partitionKey priority publisherId redeliveryCount
    spooledTime undelivered
"""


@pytest.mark.parametrize(
    ("kind", "names"),
    [(QueueStatus, QUEUE_NAMES), (FlowStatus, FLOW_NAMES), (MsgStatus, MSG_NAMES)],
)
def test_names_of_the_field(kind: type, names: str) -> None:
    """Every attribute that scripts know is there under its name."""
    assert set(names_of(kind)) >= set(names.split())
