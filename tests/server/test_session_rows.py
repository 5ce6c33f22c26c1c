"""vpnrouter.management.status.clients: a session without a spool; with one, test_clients.py has it."""

from types import ModuleType

from vpnrouter.management.status.clients import session_status
from vpnrouter.management.status.stats_baseline import EndpointBaselines
from vpnrouter.wire.mqtt.packets import Will
from vpnrouter.wire.mqtt.properties import Properties


def test_a_session(kit: ModuleType) -> None:
    """What it was begun with, and its will while that may still be published."""
    world = kit.MemoryRouter()
    client = world.connect(
        "c",
        clean_start=False,
        properties=Properties(session_expiry_interval=60),
        will=Will(b"gone/c", b"x"),
    )
    client.subscribe("a")
    session = world.vpn().clients["c"]
    row = session_status("blue", session, EndpointBaselines())
    assert (row.mqtt_session_client_id, row.client_name, row.owner) == ("c", "c", "#anonymous")
    assert (row.connected, row.clean, row.durable) == (True, False, False)
    assert (row.session_expiry_interval, row.subscription_count) == (60, 1)
    assert (row.will, row.will_topic) == (True, "gone/c")
    assert (row.queue_name, row.msg_count, row.spooled_msg_count) == ("", 0, 0)
    client.disconnect()
    row = session_status("blue", session, EndpointBaselines())
    assert (row.connected, row.will, row.will_topic, row.owner) == (False, False, "", "#anonymous")
