import base64
import threading
from typing import Any

import pytest
import trio
import trio.testing

from vpnrouter import limits
from vpnrouter.config.secrets import Password, hash_password
from vpnrouter.config.settings_models import Management
from vpnrouter.errors import RequestError
from vpnrouter.management.access import Access

HASH = hash_password("right", bytes(16))


def access_of(**users: dict[str, Any]) -> Access:
    """Access for these users."""
    return Access.of(Management.model_validate({"users": users}))


def basic(name: str, password: str) -> str:
    """The header of HTTP basic authentication."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


async def refusal(access: Access, authorization: str, peer: str = "192.0.2.1") -> RequestError:
    """How a request is refused."""
    with pytest.raises(RequestError) as caught:
        await access.admit(peer, "router.example", authorization)
    return caught.value


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize(
    "host", ["", "localhost", "localhost:8080", "127.0.0.1:80", "[::1]:8080", "[::1]"]
)
async def test_without_users_this_machine_is_served(peer: str, host: str) -> None:
    """Whoever is here may do everything without a login."""
    caller = await access_of().admit(peer, host, "")
    assert caller.may_change
    assert caller.sees("any")


@pytest.mark.parametrize("peer", ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "", "nonsense"])
async def test_without_users_no_other_is_served(peer: str) -> None:
    """An address elsewhere is refused, login or not."""
    with pytest.raises(RequestError, match="No users are configured, so") as caught:
        await access_of().admit(peer, "localhost", basic("a", "b"))
    assert caught.value.http_status == 403


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8080", "192.0.2.1", "127.0.0.1.evil", "[::1].evil"),
        *("localhost:x@evil", "localhost@evil", "user@localhost", "[::1", "[::1]:80:evil", "::1"),
        *("localhost:80/evil", "localhost evil", "localhost:80\x1b[2J", "localhost."),
    ],
)
async def test_without_users_another_name_of_this_machine_is_refused(host: str) -> None:
    """A browser that was led here by a name of somebody else's gets nothing."""
    with pytest.raises(RequestError, match="only localhost is served") as caught:
        await access_of().admit("127.0.0.1", host, "")
    assert caught.value.http_status == 403


@pytest.mark.parametrize("stored", ["right", HASH], ids=["plain", "hash"])
async def test_users(stored: str) -> None:
    """The right password lets in with role and message VPNs, from any address; again as well."""
    access = access_of(
        ann={"password": stored, "role": "admin"},
        bob={"password": stored, "msg_vpns": ["blue"]},
        eve={"password": stored, "msg_vpns": []},
    )
    for _ in range(2):
        ann = await access.admit("192.0.2.1", "x", basic("ann", "right"))
        assert (ann.name, ann.may_change, ann.sees("blue")) == ("ann", True, True)
        bob = await access.admit("192.0.2.1", "x", basic("bob", "right"))
        assert (bob.may_change, bob.sees("blue"), bob.sees("red")) == (False, True, False)
        assert not (await access.admit("::1", "x", basic("eve", "right"))).sees("blue")


@pytest.mark.parametrize("stored", ["right", HASH], ids=["plain", "hash"])
@pytest.mark.parametrize(
    ("name", "password"), [("ann", "wrong"), ("ann", ""), ("nobody", "right"), ("", "right")]
)
async def test_a_wrong_login(stored: str, name: str, password: str) -> None:
    """Unknown user and wrong password are one refusal, also after a right login, also from here."""
    access = access_of(ann={"password": stored})
    await access.admit("192.0.2.1", "x", basic("ann", "right"))
    error = await refusal(access, basic(name, password), "127.0.0.1")
    assert (error.code, error.status, error.http_status) == (72, "UNAUTHORIZED", 401)


@pytest.mark.parametrize(
    "authorization",
    ["", "Basic", "Basic !!!", "Basic YW5u", "Bearer YW5uOnJpZ2h0", "Basic /////w=="],
)
async def test_no_login(authorization: str) -> None:
    """Whatever is no basic authentication is refused and costs no attempt."""
    access = access_of(ann={"password": "right"})
    for _ in range(limits.MANAGEMENT_LOGIN_FAILURES + 1):
        assert (await refusal(access, authorization)).http_status == 401


async def test_an_unknown_name_takes_as_long() -> None:
    """A hash is computed for it as well, so that names cannot be found out."""
    verified: list[bytes] = []
    access = access_of(ann={"password": HASH})
    right = access._decoy
    assert right is not None

    class Watching:
        is_hash = True

        def verify(self, given: bytes) -> bool:
            verified.append(given)
            return True

    watching: Any = Watching()
    access._decoy = watching
    error = await refusal(access, basic("nobody", "right"))
    assert verified == [b"right"]
    assert error.http_status == 401


async def test_too_many_wrong_passwords() -> None:
    """The address then waits, the right password too; others and later it is let in."""
    now = [0]
    users = Management.model_validate({"users": {"ann": {"password": "right"}}}).users
    access = Access(users, lambda: now[0])
    for _ in range(limits.MANAGEMENT_LOGIN_FAILURES):
        assert (await refusal(access, basic("ann", "wrong"))).http_status == 401
    error = await refusal(access, basic("ann", "right"))
    assert error.http_status == 429
    assert str(error) == "Too many wrong passwords from 192.0.2.1; try again in 60 s"
    await access.admit("192.0.2.2", "x", basic("ann", "right"))
    now[0] += 60_000_000_000
    await access.admit("192.0.2.1", "x", basic("ann", "right"))


async def test_logins_wait_in_a_bounded_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes are verified off the loop; beyond the bound a login is told to come again, without blame."""
    held = threading.Event()
    monkeypatch.setattr(Password, "verify", lambda self, given: held.wait(20))
    access = access_of(ann={"password": HASH})
    admitted: list[str] = []

    async def login(number: int) -> None:
        peer = f"192.0.2.{number}"
        admitted.append((await access.admit(peer, "x", basic("ann", f"{number}"))).name)

    async with trio.open_nursery() as nursery:
        for number in range(limits.MANAGEMENT_LOGINS_WAITING):
            nursery.start_soon(login, number)
        await trio.testing.wait_all_tasks_blocked(0.02)
        for _ in range(limits.MANAGEMENT_LOGIN_FAILURES + 1):
            assert (await refusal(access, basic("ann", "more"), "192.0.2.99")).http_status == 503
        assert admitted == []
        held.set()
    assert len(admitted) == limits.MANAGEMENT_LOGINS_WAITING


async def test_other_users_from_now_on() -> None:
    """Who is gone or has another password is refused at once; whoever did not change is not verified again."""
    access = access_of(ann={"password": HASH}, bob={"password": "one"}, eve={"password": "x"})
    for name, password in (("ann", "right"), ("bob", "one"), ("eve", "x")):
        await access.admit("192.0.2.1", "", basic(name, password))
    users = {"ann": {"password": HASH, "role": "admin"}, "bob": {"password": "two"}}
    access.use(Management.model_validate({"users": users}).users)
    assert (await access.admit("192.0.2.1", "", basic("ann", "right"))).may_change
    assert (await refusal(access, basic("bob", "one"))).http_status == 401
    assert (await refusal(access, basic("eve", "x"))).http_status == 401
    await access.admit("192.0.2.1", "", basic("bob", "two"))


async def test_a_password_that_changes_while_it_is_verified(monkeypatch: Any) -> None:
    """The old one lets nobody in that was not in before."""
    access = access_of(ann={"password": HASH})
    began, go = threading.Event(), threading.Event()

    def slow(self: Password, given: bytes) -> bool:
        began.set()
        return go.wait(20)

    monkeypatch.setattr(Password, "verify", slow)
    async with trio.open_nursery() as tasks:

        async def ask() -> None:
            assert (await refusal(access, basic("ann", "right"))).http_status == 401

        tasks.start_soon(ask)
        await trio.to_thread.run_sync(began.wait, 20)
        access.use(Management.model_validate({"users": {"ann": {"password": "other"}}}).users)
        go.set()


@pytest.mark.parametrize(
    ("peers", "one"),
    [
        (["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201"], True),
        (["2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::1"], True),
        (["2001:db8::1", "2001:db8:0:1::1"], False),
        (["192.0.2.1", "192.0.2.2"], False),
    ],
)
async def test_addresses_of_one_host_count_together(peers: list[str], one: bool) -> None:
    """However an address is written, and whichever of its 2^64 a host takes."""
    access = access_of(ann={"password": "right"})
    failed = [
        (await refusal(access, basic("ann", "wrong"), peers[number % len(peers)])).http_status
        for number in range(limits.MANAGEMENT_LOGIN_FAILURES + 1)
    ]
    assert (failed[-1] == 429) is one


async def test_a_password_that_is_not_hashed_takes_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where others are hashed, its user is not told from a name that is none."""
    hashed: list[bytes] = []
    access = access_of(ann={"password": HASH}, bob={"password": "plain"})
    verify = Password.verify

    def counted(self: Password, given: bytes) -> bool:
        if self.is_hash:
            hashed.append(given)
        return verify(self, given)

    monkeypatch.setattr(Password, "verify", counted)
    for name in ("ann", "bob", "nobody"):
        assert (await refusal(access, basic(name, name))).http_status == 401
    assert hashed == [b"ann", b"bob", b"nobody"]
    await access.admit("192.0.2.1", "x", basic("bob", "plain"))
    assert len(hashed) == 3
