"""Guessing passwords: slowed by address, telling nothing by its time, and not felt by the messages."""

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from vpnrouter import limits

PATH = "/SEMP/v2/monitor/msgVpns"
STALL_S = 1.0
"""What a message may be held up by a storm of logins; a hash takes some 0.07 s of another core or this one."""


def guess(attacked: Any, source: str, user: str, password: str) -> int:
    """The response code of one login."""
    with httpx.Client(
        transport=httpx.HTTPTransport(local_address=source), timeout=60, auth=(user, password)
    ) as client:
        return client.get(f"{attacked.url}{PATH}").status_code


@pytest.mark.parametrize("user", ["root", "hashed", "nobody"])
def test_ten_guesses_a_minute(attacked: Any, user: str) -> None:
    """All at once are as many as one after the other; then the right password does not help either."""
    source = {"root": "127.0.2.1", "hashed": "127.0.2.2", "nobody": "127.0.2.3"}[user]
    with ThreadPoolExecutor(30) as pool:
        found = list(
            pool.map(lambda number: guess(attacked, source, user, f"x{number}"), range(30))
        )
    assert found.count(401) == limits.MANAGEMENT_LOGIN_FAILURES
    assert found.count(429) == 30 - limits.MANAGEMENT_LOGIN_FAILURES
    assert guess(attacked, source, "root", "pw") == 429
    assert guess(attacked, "127.0.2.9", "root", "pw") == 200


def test_nothing_is_told_by_time(attacked: Any) -> None:
    """A name that is none takes as long as a wrong password, hashed or not."""
    took: dict[str, list[float]] = {"root": [], "hashed": [], "nobody": []}
    for number in range(6):
        for index, (user, times) in enumerate(took.items()):
            began = time.monotonic()
            assert guess(attacked, f"127.0.3.{index + 1}", user, f"x{number}") == 401
            times.append(time.monotonic() - began)
    middle = {user: statistics.median(times) for user, times in took.items()}
    assert max(middle.values()) < 2.5 * min(middle.values()), middle


def test_a_storm_of_logins_holds_no_message_up(attacked: Any, paho: Any) -> None:
    """While logins come from many addresses, a message takes about as long as ever."""
    client = paho(attacked.process.port("mqtt"), "measuring")
    client.subscribe("storm")
    ended = threading.Event()
    refused: list[int] = []

    def storm(first: int) -> None:
        number = 0
        while not ended.is_set():
            source = f"127.0.{4 + first}.{1 + number // 8 % 250}"
            refused.append(guess(attacked, source, "hashed", f"x{first} {number}"))
            number += 1

    threads = [threading.Thread(target=storm, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    try:
        took = []
        until = time.monotonic() + 3
        while time.monotonic() < until:
            began = time.monotonic()
            client.publish("storm", b"x")
            assert client.next() == ("storm", b"x")
            took.append(time.monotonic() - began)
            time.sleep(0.01)
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)
    assert set(refused) <= {401, 503}
    assert refused.count(401) > 5
    assert len(took) > 20
    assert max(took) < STALL_S, (max(took), statistics.median(took))
    assert statistics.median(took) < STALL_S / 4
