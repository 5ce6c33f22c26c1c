"""Hop limits that chains exceed."""

import runpy
from pathlib import Path
from typing import Any

KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
bridge, vpn, mesh, told = (KIT[name] for name in ("bridge", "vpn", "mesh", "told"))


def chain(length: int, **last: Any) -> dict[str, Any]:
    """`length` bridges in a row; `last` are keys of the last one."""
    names = [f"r{number}/v" for number in range(length + 1)]
    data = {names[0]: vpn()}
    for number in range(1, length + 1):
        more = last if number == length else {}
        data[names[number]] = vpn({"back": bridge(names[number - 1], filters=["w/>"], **more)})
    return data


def test_chain_longer_than_the_limit() -> None:
    """What has to cross nine bridges with the usual limit of eight never arrives."""
    assert told(mesh(chain(8)), about="hop limit") == []
    (only,) = told(mesh(chain(9)), about="hop limit")
    assert only.startswith("r9.yaml:")
    assert ": warning: msg_vpns.v.bridges.back: hop limit: topic w/x published in r0/v" in only
    assert "r8/v -> r9/v is 9 bridges, and max_ttl is 8" in only


def test_limit_as_written() -> None:
    """The finding stands at max_ttl where it is written."""
    (only,) = told(mesh(chain(3, max_ttl=2)), about="hop limit")
    assert "msg_vpns.v.bridges.back.max_ttl: hop limit" in only
    assert "r0/v -> r1/v -> r2/v -> r3/v is 3 bridges, and max_ttl is 2" in only
    assert told(mesh(chain(3, max_ttl=3)), about="hop limit") == []


def test_shorter_way() -> None:
    """What comes by a shorter way as well is not lost; other topics are."""
    data = chain(3, max_ttl=2)
    data["r3/v"]["bridges"]["short"] = bridge("r0/v", filters=["w/>"])
    assert told(mesh(data), about="hop limit") == []
    data["r3/v"]["bridges"]["short"]["remote_subscriptions"] = ["w/y/>"]
    assert len(told(mesh(data), about="hop limit")) == 1


def test_shorter_way_for_the_example() -> None:
    """What comes another way is no witness, though the chain would bring more."""
    data = chain(3, max_ttl=2)
    data["r3/v"]["bridges"]["short"] = bridge("r0/v", filters=["w/*"])
    assert told(mesh(data), about="hop limit") == []


def test_nothing_travels_the_chain() -> None:
    """A chain that no topic travels whole loses none."""
    data = chain(3, max_ttl=2)
    data["r2/v"]["bridges"]["back"]["remote_subscriptions"] = ["v/>"]
    assert told(mesh(data), about="hop limit") == []


def test_alike_are_told_once() -> None:
    """A chain far too long is one finding, with the number of bridges that lose the topic."""
    (only,) = told(mesh(chain(12)), about="hop limit")
    assert only.endswith("; 3 more bridges keep the topic out so")
