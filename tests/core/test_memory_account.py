"""The account of memory: what counts at each level, who does without, and what is given back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.memory_account import MemoryAccount

if TYPE_CHECKING:
    from vpnrouter.testing.memory import MemoryRouter

BOUND = 1_000


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_bound_exceeded_by_one(level: int) -> None:
    """At each level the bound can be reached, and one byte more counts nowhere."""
    bounds = [0, 0, 0]
    bounds[level] = BOUND
    router = MemoryAccount("", bounds[0])
    vpn = MemoryAccount("blue", bounds[1], router)
    client = MemoryAccount("c", bounds[2], vpn)
    assert client.take(BOUND)
    assert not client.take(1)
    assert [account.held for account in (router, vpn, client)] == [BOUND] * 3
    assert [account.refused for account in (router, vpn, client)] == [1] * 3
    client.give_back(BOUND)
    assert [account.held for account in (router, vpn, client)] == [0] * 3


def test_what_lasts_has_half() -> None:
    """What stays when connections end leaves half of each bound to others."""
    vpn = MemoryAccount("blue", BOUND)
    session = MemoryAccount("s", 0, vpn)
    assert session.keep(BOUND // 2)
    assert not session.keep(1)
    assert session.take(BOUND // 2)
    assert (vpn.held, vpn.lasting, vpn.own) == (BOUND, BOUND // 2, BOUND // 2)
    session.forget(BOUND // 2)
    session.give_back(BOUND // 2)
    session.close()
    assert (vpn.held, vpn.lasting, vpn.unreturned) == (0, 0, 0)


def test_what_is_not_given_back_is_told() -> None:
    """A holder that ends takes what it held with it, and that is told."""
    vpn = MemoryAccount("blue", BOUND)
    client = MemoryAccount("c", 0, vpn)
    client.take(7)
    client.close()
    client.give_back(7)
    assert (vpn.held, vpn.unreturned) == (0, 7)
    assert not client.take(1)


def test_a_client_username_is_forgotten_with_its_last_client() -> None:
    """The account of a client username is one while somebody uses it, with the bound given last."""
    vpn = MemoryAccount("blue", 0)
    username = vpn.of("u", 5)
    first = MemoryAccount("1", 0, username)
    second = MemoryAccount("2", 0, vpn.of("u", BOUND))
    assert username.most == BOUND
    first.take(3)
    first.give_back(3)
    first.close()
    assert vpn.of("u") is username
    second.close()
    assert username.closed
    assert vpn.of("u") is not username


@pytest.mark.parametrize(
    ("sizes", "asks", "ended"),
    [
        # (address, bytes) of each; who asks for 30,000 more; who is ended: the one with most of the address with most.
        ([(1, 70_000), (2, 60_000), (2, 50_000), (3, 1_000)], 3, 1),
        ([(1, 60_000), (2, 10_000), (2, 20_000)], 1, 0),
        ([(1, 60_000), (2, 20_000), (2, 20_000)], 0, 0),
    ],
)
def test_the_one_with_most(
    world: MemoryRouter, sizes: list[tuple[int, int]], asks: int, ended: int
) -> None:
    """At the bound of a client username the address with most pays, with its largest client."""
    clients = [
        world.connect(f"c{index}", peer=f"192.0.2.{address}")
        for index, (address, _) in enumerate(sizes)
    ]
    for client, (_, size) in zip(clients, sizes, strict=True):
        assert client.connection.take(size)
    (username,) = world.vpn().memory.inner_accounts
    username.most = username.held + 20_000
    given = clients[asks].connection.take(30_000)
    world.router.context.jobs.finish()
    assert given == (asks != ended)
    assert [client.closed for client in clients] == [
        index == ended and asks != ended for index in range(len(clients))
    ]
    for client, (_, size) in zip(clients, sizes, strict=True):
        client.connection.give_back(size)
    if given:
        clients[asks].connection.give_back(30_000)
