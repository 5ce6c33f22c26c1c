import pytest
import trio

from vpnrouter.management.queue_source import (
    Done,
    FlowStatus,
    MsgStatus,
    NoQueues,
    QueueSource,
    QueueStatus,
)
from vpnrouter.management.rows import names_of

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


def test_a_router_without_a_spool() -> None:
    """It has no queues, and nothing can be done to them."""
    source: QueueSource = NoQueues()
    assert list(source.queue_names("v")) == []
    assert list(source.tx_flows("v", "q")) == []
    assert list(source.msgs("v", "q", 0, 10)) == []
    assert source.queue("v", "q") is None
    assert source.payload("v", "q", 1) is None

    async def change() -> list[Done]:
        assert await source.start_replay("v", "q", "", 0, 0) == "503 Replay Disabled"
        assert not await source.cancel_replay("v", "q")
        deleted = await source.delete_msgs("v", "q", None)
        return [deleted, await source.copy_msgs("v", "q", "r", None, move=True)]

    assert trio.run(change) == [Done(0), Done(0)]
