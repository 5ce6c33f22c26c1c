"""What is true of a simulation, counted from its plan and not from its rows."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vpnrouter.simulation.faults.placement import Fault
from vpnrouter.simulation.plan import Plan

FILE_NAME = "truth.json"
"""Where it stands, under the output directory."""

Truth = dict[str, Any]


def tell(
    plan: Plan, counts: NDArray[np.int64], faults: list[Fault], consequences: list[Fault]
) -> Truth:
    """The truth about `plan` with `counts` messages of each stream.

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
