import struct

import pytest

from vpnrouter.spool import keys

ONE_OF_EACH = [
    keys.bodies(7),
    keys.index(7),
    keys.settled(3, 7),
    keys.endpoint(3),
    keys.mark(3),
    keys.redeliveries(3, 7),
    keys.outbound(3, 9),
    keys.inbound(3, 9),
    keys.session("v", "c"),
    keys.retained("v", b"t"),
    keys.bridge("v", "b"),
    keys.NEXT_ID,
    keys.STORE,
]


def test_each_kind_has_a_byte_of_its_own() -> None:
    """No prefix of one kind is that of another."""
    assert len({key[:1] for key in ONE_OF_EACH}) == len(ONE_OF_EACH)


def test_layout() -> None:
    """The bytes of the keys: stores of an earlier day must stay readable."""
    assert [key.hex() for key in ONE_OF_EACH] == [
        "6d0000000000000007",
        "690000000000000007",
        "61000000000000000700000003",
        "6500000003",
        "6b00000003",
        "63000000030000000000000007",
        "70000000030009",
        "71000000030009",
        "73760063",
        "74760074",
        "62760062",
        "6e",
        "23",
    ]


@pytest.mark.parametrize("make", [keys.bodies, keys.index])
def test_keys_sort_as_they_count(make: object) -> None:
    """Byte order is number order, over all lengths of a number."""
    assert callable(make)
    numbers = [0, 1, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, (1 << 64) - 1]
    made = [make(number) for number in numbers]
    assert made == sorted(made)
    assert [keys.number_of(key) for key in made] == numbers


def test_numbers_come_back() -> None:
    """What was put into a key can be read from it."""
    assert keys.endpoint_of(keys.settled(3, 7)) == 3
    assert keys.number_of(keys.settled(3, 7)) == 7
    assert keys.endpoint_of(keys.redeliveries(3, 7)) == 3
    assert keys.second_of(keys.redeliveries(3, 7)) == 7
    assert keys.second_of(keys.outbound(3, 9)) == 9
    assert keys.unpack_id(keys.pack_id(1 << 60)) == 1 << 60


def test_names_come_back() -> None:
    """A topic may have any bytes; the VPN ends with the first NUL."""
    assert keys.vpn_and_rest(keys.retained("größe", b"a\0b")) == ("größe", b"a\0b")
    assert keys.retained("v", b"t").startswith(keys.of_vpn(keys.RETAINED, "v"))
    assert not keys.retained("vv", b"t").startswith(keys.of_vpn(keys.RETAINED, "v"))


def test_number_that_does_not_fit() -> None:
    """A number is never cut to its field."""
    with pytest.raises(struct.error):
        keys.settled(1 << 32, 1)
    with pytest.raises(struct.error):
        keys.bodies(1 << 64)
