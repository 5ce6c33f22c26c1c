"""Equality and repr that all packets share."""

import pytest

from vpnrouter.wire.mqtt.packets import Packet, Pingreq, Pingresp


def test_packets_are_equal_by_type_and_fields() -> None:
    """Two pings of a kind are equal, of two kinds are not, and a packet equals nothing else."""
    assert Pingreq() == Pingreq()
    assert Pingreq() != Pingresp()
    assert Pingreq() != 12
    assert Packet(12) != Packet(13)


def test_repr_names_the_class() -> None:
    """A failing test shows what it compared."""
    assert repr(Pingreq()) == "Pingreq()"


def test_packets_have_no_hash() -> None:
    """Their fields may change, so they are no keys."""
    with pytest.raises(TypeError):
        hash(Pingreq())
