"""Runs a C program that sends everything back (echo.c): the floor of latencies, without a broker's work."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import override

from bench.dialects import Mqtt
from bench.ours import ready_addresses, ready_line
from bench.processes import running
from bench.products import Access, Product, Site, directory, first_line

SOURCE = Path(__file__).parent / "echo.c"


class Echoed(Mqtt):
    """Frames of MQTT, to a process that only sends them back: nobody logs in or subscribes."""

    @override
    def log_in(self, sock: object, client: str) -> None:
        """Nothing is said."""


class Echo(Product):
    """The program, compiled anew for each run."""

    name = "C echo"
    accesses = frozenset({Access.PLAIN})

    @override
    def missing(self) -> str:
        return (
            "" if shutil.which("cc") else "no C compiler (cc): latencies have no floor beside them"
        )

    @override
    def version(self) -> str:
        return first_line(["cc", "--version"])

    @override
    @contextlib.contextmanager
    def single(self, core: int | None, access: Access = Access.PLAIN) -> Iterator[Site]:
        with directory("echo") as folder:
            program = folder / "echo"
            subprocess.run(["cc", "-O2", "-o", str(program), str(SOURCE)], check=True)
            log = folder / "log"
            begin = time.perf_counter()
            with running([str(program)], core=core, log=log) as process:
                address = ready_addresses(ready_line(process, log))["echo"]
                took = time.perf_counter() - begin
                yield Site(Echoed(), address, address, [process.pid], core, [took], echoes=True)

    @override
    def bridged(self, core: int | None) -> contextlib.AbstractContextManager[Site]:
        raise NotImplementedError
