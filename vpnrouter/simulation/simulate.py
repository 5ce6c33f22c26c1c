"""Makes the trace data of a mesh, and writes down what is true of it."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from vpnrouter.errors import OperationError
from vpnrouter.simulation import configs, files, mesh, plan, truth
from vpnrouter.simulation.faults.kinds import KINDS, plant
from vpnrouter.simulation.faults.placement import Placement
from vpnrouter.simulation.files import RowGenerator
from vpnrouter.simulation.mesh import Network

START_NS: Final = 1_772_352_000 * 10**9
"""2026-03-01T08:00:00Z: simulations begin here when nothing else is said."""

LEAST_SECONDS: Final = 60.0
"""Shortest time that can be simulated: links must come up and go down."""

FOLDER: Final = "traces"
"""Directory of the trace files, under the output directory."""

_SLICE_ROWS: Final = (500_000, 4_000_000)
_ROWS_PER_GROUP: Final = 32_768
_ROWS_PER_VPN: Final = 500
_VPNS_PER_ROUTER: Final = 4
_VPNS_PER_FAULT: Final = 6
_VPNS_FOR_TWO: Final = 160
_FEEDS_PER_VPN: Final = 1.0
_ROWS_PER_ITEM: Final = 400
_ITEMS_MOST: Final = 12


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to simulate.

    `network` is one of `mesh.names()`. `vpns` message VPNs, 0: as suits the rows. About `rows` trace rows
    over `seconds`, as if a share `sample` of the messages was traced. `faults` are kinds, one fault each.
    """

    network: str = "sndlib/germany50"
    vpns: int = 0
    rows: int = 100_000
    seconds: float = 3_600.0
    sample: float = 1.0
    faults: tuple[str, ...] = ()
    seed: int = 1
    start_ns: int = START_NS
    configs: bool = True


def all_faults(vpns: int) -> tuple[str, ...]:
    """Every kind of fault, twice where the mesh has room; `vpns` 0: not known yet."""
    return tuple(KINDS) * (2 if vpns >= _VPNS_FOR_TWO else 1)


def simulate(
    options: Options,
    output: Path,
    progress: Callable[[int, int], None] = lambda _done, _rows: None,
) -> truth.Truth:
    """Write traces, configurations and truth under `output`; returns the truth.

    `progress` is told the rows written so far, and all.

    Raises:
        OperationError: no such network, options that do not go together, or the directory has traces or
            cannot be written.
    """
    folder = output / FOLDER
    if folder.exists() and any(folder.iterdir()):
        raise OperationError(f"{folder} has traces already: choose another directory")
    if options.seconds < LEAST_SECONDS or not 0 < options.sample <= 1:
        raise OperationError(
            f"simulate {LEAST_SECONDS:g} seconds or more, a sample above 0 up to 1"
        )
    graph = mesh.load(options.network)
    rng = np.random.default_rng(options.seed)
    ground = _plan(graph, options, rng)
    made = ground.plan
    counts = plan.share_out(made, options.rows)
    told = truth.tell(made, counts, ground.faults, ground.consequences)
    press = RowGenerator(made, counts, options.start_ns, rng)
    try:
        output.mkdir(parents=True, exist_ok=True)
        out = files.TraceFiles(folder, made, rng, options.sample)
        _generate(press, out, made, options.seconds, progress)
        if options.configs:
            configs.write(made, output, options.sample)
        told = {"options": asdict(options), "files": len(out.paths), **told}
        text = json.dumps(told, indent=1, ensure_ascii=False)
        (output / truth.FILE_NAME).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise OperationError(f"cannot write to {output}: {error.strerror or error}") from error
    return told


def _plan(graph: Network, options: Options, rng: np.random.Generator) -> Placement:
    vpns = options.vpns
    if not vpns:
        usual = min(_VPNS_PER_ROUTER * len(graph.routers), options.rows // _ROWS_PER_VPN)
        vpns = max(4, usual, _VPNS_PER_FAULT * len(options.faults))
    built = mesh.build(graph, vpns, len(options.faults), rng)
    items = int(np.clip(options.rows / vpns / _ROWS_PER_ITEM, 1, _ITEMS_MOST))
    drafted = plan.draft(built, options.seconds, _FEEDS_PER_VPN, items, rng)
    ground = Placement(drafted, options.rows, rng)
    plant(ground, options.faults)
    plan.lay_out(drafted, options.sample, rng)
    return ground


def _generate(
    press: RowGenerator,
    out: files.TraceFiles,
    made: plan.Plan,
    seconds: float,
    progress: Callable[[int, int], None],
) -> None:
    routers = len({site.router for site in made.mesh.sites})
    # Enough for each router to fill a good part of a row group, and no more than fits in memory.
    wanted = int(np.clip(routers * _ROWS_PER_GROUP, *_SLICE_ROWS))
    slices = max(1, -(-press.rows // wanted))
    done = 0
    try:
        for at in range(1, slices + 1):
            rows, order = press.draw(seconds * at / slices)
            out.write(rows, order)
            done += len(rows)
            progress(done, press.rows)
    finally:
        out.close()
