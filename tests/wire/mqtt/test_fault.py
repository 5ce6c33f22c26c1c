"""The two errors of MQTT."""

from vpnrouter.wire.mqtt.reason import malformed, violation


def test_reason_codes_of_the_two_errors() -> None:
    """What can not be parsed is 0x81, what breaks a rule 0x82; the message is kept."""
    assert (malformed("A").reason_code, str(malformed("A"))) == (0x81, "A")
    assert (violation("B").reason_code, str(violation("B"))) == (0x82, "B")
