"""Describes this machine, assigns its cores, and reads the processor time of processes."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import time
from pathlib import Path

BROKER_CORE = 0
GENERATOR_CORE = 1


def notes() -> dict[str, str | int]:
    """What a reader of results must know of the machine."""
    model = "unknown"
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {
        "cpus": os.cpu_count() or 0,
        "cpu_model": model,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "load_1m_at_start": f"{os.getloadavg()[0]:.2f}",
    }


def cores() -> tuple[int, int] | None:
    """Broker's and generator's core, or None when this process may not use two."""
    allowed = sorted(os.sched_getaffinity(0))
    if BROKER_CORE in allowed and GENERATOR_CORE in allowed:
        return BROKER_CORE, GENERATOR_CORE
    return (allowed[0], allowed[1]) if len(allowed) > 1 else None


def raise_descriptor_limit(wanted: int) -> int:
    """Raises the limit of open files to `wanted` if this is allowed; returns the limit now in
    force.
    """
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (wanted, hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, max(limit, hard)))
            break
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def processor_seconds(pids: list[int]) -> float:
    """User and system time that the processes have used so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def core_seconds(core: int, *fields: int) -> float:
    """Seconds that a core has spent since the machine came up in the states of these fields of /proc/stat."""
    for line in Path("/proc/stat").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[0] == f"cpu{core}":
            return sum(int(words[field]) for field in fields) / os.sysconf("SC_CLK_TCK")
    return 0.0


IDLE = (4, 5)
STEAL = (8,)
"""Fields of /proc/stat: idle and waiting for a disk; what the host gave to other guests."""


def run_delay_seconds(pids: list[int]) -> float:
    """How long the threads of the processes were ready and had no core (schedstat, second field)."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            # A thread may end meanwhile.
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text(encoding="utf-8").split()[1])
    return total / 1e9


class Usage:
    """Who used the cores since this was made."""

    def __init__(self, pids: list[int], core: int | None) -> None:
        """`pids` are the broker's processes, `core` the one they are bound to."""
        self._pids = pids
        self._core = core
        self._began = time.perf_counter()
        self._generator = time.process_time()
        self._broker = processor_seconds(pids)
        self._idle = core_seconds(core, *IDLE) if core is not None else 0.0
        self._steal = core_seconds(core, *STEAL) if core is not None else 0.0
        self._delay = run_delay_seconds(pids)

    def shares(self) -> dict[str, float]:
        """Shares of the time since then.

        `generator_busy` and `broker_busy` are what these used of their core, near 1 for whoever
        was the bottleneck; `others_busy` is what of the broker's core neither it nor idleness had.
        """
        took = time.perf_counter() - self._began
        generator = (time.process_time() - self._generator) / took
        broker = (processor_seconds(self._pids) - self._broker) / took
        others = 0.0
        if self._core is not None:
            others = max(0.0, 1 - broker - (core_seconds(self._core, *IDLE) - self._idle) / took)
        return {"generator_busy": generator, "broker_busy": broker, "others_busy": others}

    def waits(self) -> dict[str, float]:
        """Shares of the time since then in which the broker waited for its core.

        `run_delay`: its threads were ready and something else ran; `steal`: the machine's host ran others.
        """
        took = time.perf_counter() - self._began
        steal = 0.0
        if self._core is not None:
            steal = core_seconds(self._core, *STEAL) - self._steal
        return {
            "run_delay": (run_delay_seconds(self._pids) - self._delay) / took,
            "steal": steal / took,
        }


def resident_bytes(pids: list[int]) -> int:
    """Resident memory of the processes."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
    return total
