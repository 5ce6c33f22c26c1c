"""What a client says about messages of queues."""

from typing import Any

from vpnrouter import limits
from vpnrouter.management.client import ManagementClient, queue_path


def test_messages(standing: Any, still: Any) -> None:
    """They are browsed, read, copied and deleted by the names that a path encodes."""
    with standing.serving(still) as address, ManagementClient(f"http://{address}") as client:
        assert [row["msgId"] for row in client.msgs("blue", "orders", 3, 20)] == [21, 22, 23]
        assert client.payload("a/b", "x,y", 7) == b"seven"
        assert [row["flowId"] for row in client.tx_flows("blue", "orders")] == [2, 10]
        assert client.put_msgs("blue", "orders", "dead", [1, 2], move=True) == 2
        assert client.delete_msgs("blue", "orders", [3, 3, 4]) == 2
        assert client.delete_msgs("blue", "dead") == 2


def test_as_many_as_a_request_may_name(standing: Any, still: Any) -> None:
    """More messages are named in several requests."""
    count = limits.MANAGEMENT_MSG_IDS + 1
    still.queues.contents["blue", "orders"] = dict.fromkeys(range(1, count + 1), b"")
    with standing.serving(still) as address, ManagementClient(f"http://{address}") as client:
        assert client.delete_msgs("blue", "orders", range(1, count + 1)) == count


def test_path_of_a_queue() -> None:
    """Each name is encoded by itself."""
    assert queue_path("a/b", "x,y") == "/msgVpns/a%2Fb/queues/x%2Cy"
