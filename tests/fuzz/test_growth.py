"""The generator that looks for growth: it finds what is planted, makes plans shorter, and repeats its seeds."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fuzz.growth.__main__ import PROTOCOLS, talker
from fuzz.growth.measured import AGAIN_BYTES, LEFT_BYTES, MIB, Bench, Measured, verdict
from fuzz.growth.plans import Plan, Step, draw_plan, read, shortened

ROOT = Path(__file__).parents[2]

SEED = int(os.environ.get("VPNROUTER_SEED", "0")) or random.SystemRandom().getrandbits(32)

LONG = "VPNROUTER_LONG" in os.environ
SECONDS = 300

# A server in the router's place: it keeps so many bytes for each byte that it takes, as long as the connection or
# for ever.
PLANTED = """
import selectors, socket, sys
factor, leaks = FACTOR, LEAKS
door = socket.create_server(("127.0.0.1", 0))
watch = selectors.DefaultSelector()
watch.register(door, selectors.EVENT_READ, None)
print(f"ready router=x http=127.0.0.1:{door.getsockname()[1]}", flush=True)
kept = []
while True:
    for key, _ in watch.select():
        if key.data is None:
            watch.register(door.accept()[0], selectors.EVENT_READ, [])
            continue
        chunk = key.fileobj.recv(65536)
        if chunk:
            (kept if leaks else key.data).append(b"x" * (len(chunk) * factor))
        else:
            watch.unregister(key.fileobj)
            key.fileobj.close()
            key.data.clear()
"""

HALVES = Plan(
    "http",
    1,
    [
        Step(0, "start", {"reads": False}),
        Step(0, "pause", {"tenths": 0}),
        Step(0, "half", {"part": "body", "size": 20_000, "count": 1, "connections": 64}),
        Step(0, "ask", {"path": "/", "count": 1, "connections": 1}),
    ],
)


@pytest.fixture(name="planted")
def _planted(tmp_path: Path) -> Iterator[Callable[[int, bool], Bench]]:
    """Makes benches whose router is the server above."""
    benches: list[Bench] = []

    def make(factor: int, leaks: bool) -> Bench:
        text = PLANTED.replace("FACTOR", str(factor)).replace("LEAKS", str(leaks))
        bench = Bench(tmp_path, talker, program=text)
        benches.append(bench)
        return bench

    yield make
    for bench in benches:
        bench.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("factor", "leaks", "kind"),
    [
        # Which of the two bounds is met first depends on the moment of the look.
        (160, False, "holds more than 64 MiB|holds more than 50 times what was sent"),
        (0, False, ""),
        pytest.param(25, True, "gives less back each time", marks=pytest.mark.slow),
    ],
)
def test_a_planted_growth_is_found(
    planted: Callable[[int, bool], Bench], factor: int, leaks: bool, kind: str
) -> None:
    """What holds too much, or keeps more at each run, is found, and what does neither is not."""
    found = planted(factor, leaks).judge(HALVES)
    assert found.kind in kind.split("|"), found.text()


def test_a_planted_growth_is_made_shorter(planted: Callable[[int, bool], Bench]) -> None:
    """The steps that are left are those that make it grow."""
    bench = planted(160, False)
    short = shortened(HALVES, lambda plan: bool(bench.judge(plan).kind), 12)
    assert [step.act for step in short.steps] == ["half"]


def test_a_factor_beyond_the_bound_is_a_finding() -> None:
    """Many times what was sent is too much, from a size on that caches do not have."""
    one = Plan("mqtt", 1, [])
    assert "50 times" in verdict(one, lambda: Measured(100_000, 20 * MIB, 0)).kind
    assert not verdict(one, lambda: Measured(100_000, 10 * MIB, 0)).kind
    assert not verdict(one, lambda: Measured(MIB, 20 * MIB, 0)).kind
    # What the store does for an earlier plan happens once.
    merged = iter([Measured(0, 34 * MIB, 0), Measured(0, 0, 0)])
    assert not verdict(one, lambda: next(merged)).kind


def test_what_stays_at_one_size_is_no_leak() -> None:
    """Caches that are full after the first run are not reported; several clients may hold what a message VPN may."""
    several = Plan("mqtt", 8, [])
    runs = iter([3 * LEFT_BYTES, 3 * LEFT_BYTES + AGAIN_BYTES // 2])
    found = verdict(several, lambda: Measured(200 * MIB, 200 * MIB, next(runs)))
    assert not found.kind
    assert len(found.runs) == 2


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_seed_repeats_its_plans(protocol: str) -> None:
    """The same seed draws the same steps, and a plan is read back as it was printed."""
    words = PROTOCOLS[protocol][1]
    for seed in range(20):
        plan = draw_plan(random.Random(seed), protocol, words)
        assert plan == draw_plan(random.Random(seed), protocol, words)
        assert read(plan.text()) == plan
        assert {step.act for step in plan.steps} <= set(words.acts)


if LONG:
    # A search, whose finds are news: for long runs.

    @pytest.mark.slow
    @pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
    def test_the_memory_of_a_router_stays_bounded(protocol: str) -> None:
        """What clients say, at the extremes of what is legal, holds little and leaves nothing behind."""
        arguments = [sys.executable, "-m", "fuzz.growth", "--protocol", protocol]
        arguments += ["--seconds", str(SECONDS), "--seed", str(SEED)]
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"seed {SEED}\n{done.stderr[-20_000:]}"
