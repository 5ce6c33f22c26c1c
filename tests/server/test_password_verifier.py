"""Password verification beside the data plane."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from vpnrouter.config.secrets import hash_password, verify_password
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.router import Router
from vpnrouter.server import password_verifier
from vpnrouter.server.apply.assemble import build_router
from vpnrouter.server.password_verifier import THREADS, PasswordVerifier
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Connack, Connect

HASH = hash_password("right", bytes(16))


class Login:
    """A client's end of a connection on which a CONNECT was sent."""

    def __init__(self, router: Router, username: str, password: bytes, peer: str) -> None:
        self.connection = MqttConnection(router, peer, "blue")
        self.connection.feed(encode(Connect("c", username=username, password=password), 5))

    @property
    def code(self) -> int:
        """The reason code of the answer, -1 while there is none."""
        outbox = self.connection.outbox
        if not outbox.chunks:
            return -1
        data = outbox.chunks[0]
        answer = decode(data, 0, len(data), 5)
        assert isinstance(answer, Connack)
        return answer.reason_code


@pytest.fixture
def routed(configured: Callable[..., Any]) -> Callable[[str], Router]:
    """A router with one client username, u, and the password that it is given."""

    def made(stored: str) -> Router:
        config = configured(
            f"msg_vpns: {{blue: {{client_usernames: {{u: {{password: '{stored}'}}}}}}}}"
        )
        router = build_router(config, 1, b"secret")
        router.tick(10**12, 10**18)
        return router

    return made


async def answered(logins: list[Login]) -> None:
    """Wait until each has its answer."""
    with trio.fail_after(20):
        while any(login.code < 0 for login in logins):  # noqa: ASYNC110 - nobody tells
            await trio.sleep(0.005)


@pytest.mark.parametrize(("given", "code"), [(b"right", 0), (b"wrong", 0x86), (b"", 0x86)])
@pytest.mark.parametrize("stored", [HASH, "right"], ids=["hash", "plain"])
async def test_answers(routed: Any, stored: str, given: bytes, code: int) -> None:
    """Hashed or plain, each login gets its answer once and waits no more."""
    router = routed(stored)
    login = Login(router, "u", given, "192.0.2.1")
    async with trio.open_nursery() as nursery:
        verifier = PasswordVerifier(router, nursery)
        verifier.start_waiting()
        verifier.start_waiting()
        assert len(router.verifications) == 0
        await answered([login])
    assert login.code == code


async def test_the_loop_goes_on(routed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While hashes are verified in threads, so many at a time, other tasks run."""
    held = threading.Event()
    busy = threading.Semaphore(0)
    at_once: list[str] = []

    def slow(stored: str, given: bytes) -> bool:
        at_once.append(threading.current_thread().name)
        busy.release()
        held.wait(20)
        return False

    monkeypatch.setattr(password_verifier, "verify_password", slow)
    router = routed(HASH)
    logins = [Login(router, "u", b"%d" % number, "192.0.2.1") for number in range(THREADS + 3)]
    async with trio.open_nursery() as nursery:
        PasswordVerifier(router, nursery).start_waiting()
        with trio.fail_after(20):
            for _ in range(THREADS):
                await trio.to_thread.run_sync(busy.acquire)
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert len(at_once) == THREADS
        assert all(login.code == -1 for login in logins)
        held.set()
        await answered(logins)
    assert all(login.code == 0x86 for login in logins)


async def test_a_login_that_has_gone_is_not_verified(
    routed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 400 wrong logins whose connections ended nothing is hashed: the right one is first."""
    hashed: list[bytes] = []

    def counted(stored: str, given: bytes) -> bool:
        hashed.append(given)
        return verify_password(stored, given)

    monkeypatch.setattr(password_verifier, "verify_password", counted)
    router = routed(HASH)
    for number in range(400):
        Login(router, f"x{number}", b"no", "192.0.2.1").connection.lost("gone")
    right = Login(router, "u", b"right", "192.0.2.1")
    async with trio.open_nursery() as nursery:
        PasswordVerifier(router, nursery).start_waiting()
        await answered([right])
    assert right.code == 0
    assert hashed == [b"right"]
    assert len(router.verifications) == 0
