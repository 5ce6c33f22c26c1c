"""Simulates a mesh: writes its traces and configurations, and the truth about it."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vpnrouter.errors import OperationError
from vpnrouter.simulation import configs, files, mesh, plan
from vpnrouter.simulation.faults.kinds import KINDS, plant
from vpnrouter.simulation.faults.placement import Fault, Placement
from vpnrouter.simulation.files import RowGenerator
from vpnrouter.simulation.mesh import Network
from vpnrouter.simulation.plan import Plan

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


TRUTH_FILE: Final = "truth.json"
"""Name of the file, under the output directory."""

Truth = dict[str, Any]


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
    """Return every kind of fault, twice where the mesh has room; `vpns` 0: not known yet."""
    return tuple(KINDS) * (2 if vpns >= _VPNS_FOR_TWO else 1)


def simulate(
    options: Options,
    output: Path,
    progress: Callable[[int, int], None] = lambda _done, _rows: None,
) -> Truth:
    """Write traces, configurations and truth under `output`; returns the truth.

    `progress` is called with the rows written so far, and all.

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
    placement = _plan(graph, options, rng)
    traffic_plan = placement.plan
    counts = plan.share_out(traffic_plan, options.rows)
    truth = truth_of(traffic_plan, counts, placement.faults, placement.consequences)
    generator = RowGenerator(traffic_plan, counts, options.start_ns, rng)
    try:
        output.mkdir(parents=True, exist_ok=True)
        out = files.TraceFiles(folder, traffic_plan, rng, options.sample)
        _generate(generator, out, traffic_plan, options.seconds, progress)
        if options.configs:
            configs.write(traffic_plan, output, options.sample)
        truth = {"options": asdict(options), "files": len(out.paths), **truth}
        text = json.dumps(truth, indent=1, ensure_ascii=False)
        (output / TRUTH_FILE).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise OperationError(f"cannot write to {output}: {error.strerror or error}") from error
    return truth


def _plan(graph: Network, options: Options, rng: np.random.Generator) -> Placement:
    vpns = options.vpns
    if not vpns:
        usual = min(_VPNS_PER_ROUTER * len(graph.routers), options.rows // _ROWS_PER_VPN)
        vpns = max(4, usual, _VPNS_PER_FAULT * len(options.faults))
    built = mesh.build(graph, vpns, len(options.faults), rng)
    items = int(np.clip(options.rows / vpns / _ROWS_PER_ITEM, 1, _ITEMS_MOST))
    drafted = plan.draft(built, options.seconds, _FEEDS_PER_VPN, items, rng)
    placement = Placement(drafted, options.rows, rng)
    plant(placement, options.faults)
    plan.lay_out(drafted, options.sample, rng)
    return placement


def _generate(
    generator: RowGenerator,
    out: files.TraceFiles,
    made: plan.Plan,
    seconds: float,
    progress: Callable[[int, int], None],
) -> None:
    routers = len({site.router for site in made.mesh.sites})
    # Enough for each router to fill a good part of a row group, and no more than fits in memory.
    slice_rows = int(np.clip(routers * _ROWS_PER_GROUP, *_SLICE_ROWS))
    slices = max(1, -(-generator.rows // slice_rows))
    done = 0
    try:
        for at in range(1, slices + 1):
            rows, order = generator.draw(seconds * at / slices)
            out.write(rows, order)
            done += len(rows)
            progress(done, generator.rows)
    finally:
        out.close()


def truth_of(
    plan: Plan, counts: NDArray[np.int64], faults: list[Fault], consequences: list[Fault]
) -> Truth:
    """Return the truth about `plan` with `counts` messages of each stream.

    `counts`: rows and messages in all, rows by event, what there is of each kind of thing. `clocks`: how far
    each router's clock is ahead, nanoseconds. `edges`: each bridge with its messages sent and received.
    `faults` must be found by a report, `consequences` may be.
    """
    mesh, templates = plan.mesh, plan.templates
    messages = np.zeros(len(templates.first), np.int64)
    np.add.at(messages, [each.template for each in plan.streams], counts)
    times = np.repeat(messages, templates.length)
    for state in plan.states:
        times[state.row] += 1
    events: Counter[str] = Counter()
    sent, received = Counter[int](), Counter[int]()
    for event, bridge, many in zip(
        templates.columns["event"], templates.bridge_number, times.tolist(), strict=True
    ):
        events[str(event)] += many
        if bridge >= 0:
            (sent if event == "bridge_send" else received)[bridge] += many
    used = sorted({site.router for site in mesh.sites})
    return {
        "counts": {
            "rows": int(times.sum()),
            "messages": int(counts.sum()),
            "routers": len(used),
            "vpns": len(mesh.sites),
            "bridges": len(mesh.bridges),
            "topics": len({stream.topic for stream in plan.streams}),
            "events": dict(sorted(events.items())),
        },
        "clocks": {mesh.network.routers[at]: int(plan.clocks_ns[at]) for at in used},
        "edges": [
            {
                "from_router": mesh.sites[bridge.source].router_name,
                "from_vpn": mesh.sites[bridge.source].vpn,
                "to_router": mesh.sites[bridge.target].router_name,
                "to_vpn": mesh.sites[bridge.target].vpn,
                "bridge": bridge.name,
                "kilometres": round(bridge.km, 1),
                "sent": sent[number],
                "received": received[number],
                "downs": len(plan.downs.get(number, ())) + 1,
            }
            for number, bridge in enumerate(mesh.bridges)
        ],
        "faults": faults,
        "consequences": consequences,
    }
