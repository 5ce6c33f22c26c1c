from vpnrouter.config.endpoint import ReplayLog


def test_what_is_written_is_on() -> None:
    """Off and without room in the field; here a replay log that is written down logs everything."""
    assert ReplayLog().model_dump() == {
        "egress_enabled": True,
        "ingress_enabled": True,
        "max_spool_usage": 1000,
        "topic_filter": {"enabled": True, "subscriptions": (), "topic_syntax": "smf"},
    }
