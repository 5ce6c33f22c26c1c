"""Several remotes of one bridge: fail-over to the next, and back to the better one."""

from typing import Any


def test_fail_over_and_back(
    site: Any, bridge: Any, listener: Any, paho: Any, free_port: Any
) -> None:
    """A bridge goes to the second remote when the first is gone, and back when it is healthy again.

    The subscriber behind it sees whichever remote it is at, never both.
    """
    port = free_port()
    better = site("better", f"127.0.0.1:{port}", v={})
    worse = site("worse", v={})
    from_v = bridge("v", better, ">", remote_connection={"retry_delay": 0, "failback_delay": 1})
    from_v["remote_msg_vpns"] = [
        {"name": "v", "location": f"127.0.0.1:{worse.port('link')}", "connect_order": 2},
        {"name": "v", "location": f"127.0.0.1:{port}", "connect_order": 1},
    ]
    core = site("core", home={"from-v": from_v})
    core.bridge("from-v", inboundState="ready-in-sync", remoteRouterName="better")
    subscriber = listener(core)

    def arrives(router: Any, topic: str) -> None:
        client = paho(router.port("mqtt"), "publisher")
        client.publish(topic)
        assert subscriber.next() == (topic, b"")
        client.stop()

    arrives(better, "a/1")
    better.kill()
    core.bridge("from-v", inboundState="ready-in-sync", remoteRouterName="worse")
    arrives(worse, "b/1")
    better = site("better", f"127.0.0.1:{port}", v={})
    arrives(worse, "b/2")
    back = core.bridge("from-v", inboundState="ready-in-sync", remoteRouterName="better")
    assert back["failureCount"] >= 1
    arrives(better, "a/2")
    by_location = {row["remoteMsgVpnLocation"]: row["up"] for row in back["remotes"]}
    assert by_location == {f"127.0.0.1:{port}": True, f"127.0.0.1:{worse.port('link')}": False}
    paho(worse.port("mqtt"), "publisher").publish("b/3")
    arrives(better, "a/3")
    assert core.stop() == 0
