"""Password verification beside the data plane."""

import threading
from typing import Any

import pytest
import trio
import trio.testing

from vpnrouter.config.passwords import hash_password
from vpnrouter.core.plane import Plane
from vpnrouter.server import verify
from vpnrouter.server.verify import THREADS, Verifier
from vpnrouter.trace.recorder import Recorder


class Login:
    """A login that waits: the parts of a connection that the verifier uses."""

    def __init__(self, stored: str, given: bytes) -> None:
        self.stored_password = stored
        self.given_password = given
        self.answers: list[bool] = []
        self.answered = trio.Event()

    def password_verified(self, good: bool) -> None:
        """See Connection.password_verified."""
        self.answers.append(good)
        self.answered.set()


class Waiting:
    """The part of a router that the verifier uses."""

    def __init__(self, plane: Any, logins: list[Login]) -> None:
        self.plane = plane
        self.verifications = logins


@pytest.mark.parametrize(("given", "good"), [(b"right", True), (b"wrong", False), (b"", False)])
@pytest.mark.parametrize("hashed", [True, False])
async def test_answers(hashed: bool, given: bytes, good: bool) -> None:
    """Hashed or plain, each login gets its answer once and leaves the list."""
    stored = hash_password("right", bytes(16)) if hashed else "right"
    login = Login(stored, given)
    router: Any = Waiting(Plane("here", 1, Recorder(), 0.0), [login])
    async with trio.open_nursery() as nursery:
        verifier = Verifier(router, nursery)
        verifier.start_waiting()
        assert router.verifications == []
        verifier.start_waiting()
        await login.answered.wait()
    assert login.answers == [good]


async def test_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """While hashes are verified in threads, so many at a time, other tasks run."""
    held = threading.Event()
    busy = threading.Semaphore(0)
    at_once: list[str] = []

    def slow(stored: str, given: bytes) -> bool:
        at_once.append(threading.current_thread().name)
        busy.release()
        held.wait(20)
        return True

    monkeypatch.setattr(verify, "verify_password", slow)
    stored = hash_password("right", bytes(16))
    logins = [Login(stored, b"right") for _ in range(THREADS + 3)]
    router: Any = Waiting(Plane("here", 1, Recorder(), 0.0), list(logins))
    async with trio.open_nursery() as nursery:
        Verifier(router, nursery).start_waiting()
        with trio.fail_after(20):
            for _ in range(THREADS):
                await trio.to_thread.run_sync(busy.acquire)
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert len(at_once) == THREADS
        assert not any(login.answers for login in logins)
        held.set()
    assert all(login.answers == [True] for login in logins)
