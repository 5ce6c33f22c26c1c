"""Made-up meshes of any size with something in every table, the same for the same seed."""

import math
import random
from dataclasses import replace
from typing import Any, Final

from vpnrouter.report import schema
from vpnrouter.report.page.contents import Contents

SECOND: Final = 1_000_000_000
BEGIN: Final = 1_371_000_000 * SECOND
WIDTH: Final = 30 * SECOND
STRETCHES: Final = 120
_NAMES: Final = """\
amsterdam berlin chicago dublin essen frankfurt geneva hamburg istanbul jakarta kyoto london madrid newyork oslo
paris quito rome sydney tokyo utrecht vienna warsaw zurich boston denver lisbon milan prague seoul"""
CITIES: Final = _NAMES.split()
AREAS: Final = ["trading", "market", "risk", "orders", "fares", "fleet"]

Row = dict[str, Any]


def blank(table: Any, **values: Any) -> Row:
    """A row of a table of the schema; columns not given are null."""
    return {**dict.fromkeys(table.names), **values}


def mesh(routers: int, vpns: int, bridges: int, seed: int = 1) -> Contents:
    """Contents of a page; every router has a message VPN and the mesh is one piece if bridges suffice."""
    draw = random.Random(seed)
    names = [
        CITIES[n] if n < len(CITIES) else f"{CITIES[n % len(CITIES)]}-{n // len(CITIES)}"
        for n in range(routers)
    ]
    nodes = [_node(draw, names[n % routers], n // routers) for n in range(vpns)]
    pairs = _pairs(draw, nodes, bridges)
    edges = [_edge(draw, nodes[one], nodes[other], at) for at, (one, other) in enumerate(pairs)]
    rates, latencies, links = _per_edge(draw, edges)
    return Contents(
        nodes=nodes,
        edges=edges,
        rates=rates,
        latencies=latencies,
        links=links,
        span=(BEGIN, BEGIN + STRETCHES * WIDTH),
        timeline_width_ns=WIDTH,
        timeline=[_stretch(at) for at in range(STRETCHES)],
        topics=[_topic(draw, node) for node in nodes[:40]],
        topic_count=4_211,
        notes=["1 message VPN was seen only as the far end of a bridge."],
        **_findings(draw, nodes, edges),
        **_studies(draw, nodes),
        **_plans(nodes, edges),
    )


def _node(draw: random.Random, router: str, turn: int) -> Row:
    traced = draw.random() > 0.04
    counts = [name for name in schema.NODES.names if name not in {"router", "vpn", "traced"}]
    ingress = int(10 ** draw.uniform(2, 6))
    values: Row = dict.fromkeys(counts, 0 if traced else None)
    if traced:
        values |= {
            "ingress": ingress,
            "ingress_bytes": ingress * 180,
            "ingress_estimated": ingress,
            "delivered": ingress * 2,
            "delivered_estimated": ingress * 2,
            "bridged_in": ingress // 3,
            "bridged_out": ingress // 4,
            "discarded": draw.choice((0, 0, 0, ingress // 900)),
            "first_ns": BEGIN,
            "last_ns": BEGIN + STRETCHES * WIDTH,
        }
    vpn = AREAS[turn % len(AREAS)] + (f"-{turn // len(AREAS)}" if turn >= len(AREAS) else "")
    return {"router": router, "vpn": vpn, "traced": traced, **values}


def _pairs(draw: random.Random, nodes: list[Row], bridges: int) -> list[tuple[int, int]]:
    """Regions around hubs: spokes first, then hub to hub, then cross links; no pair twice."""
    routers = len({node["router"] for node in nodes})
    region = max(4, round(math.sqrt(routers)))
    hub_of = [at // routers * routers + at % routers // region * region for at in range(len(nodes))]
    hubs = sorted(set(hub_of))
    found: dict[tuple[int, int], None] = {}
    wanted = [(hub, at) for at, hub in enumerate(hub_of) if hub != at]
    wanted += [(one, other) for one, other in zip(hubs[1:], hubs, strict=False)]
    for pair in wanted[:bridges]:
        found[pair] = None
    while len(found) < bridges:
        kind = draw.random()
        if kind < 0.4:
            other, one = draw.choice(wanted)
        elif kind < 0.6:
            one, other = draw.choice(hubs), draw.choice(hubs)
        else:
            one = draw.randrange(len(nodes))
            near = one // routers * routers + one % routers // region * region
            other = min(near + draw.randrange(region), len(nodes) - 1)
        if one != other:
            found[one, other] = None
    return list(found)


def _edge(draw: random.Random, start: Row, goal: Row, at: int) -> Row:
    messages = int(10 ** draw.uniform(1.5, 5.8)) if draw.random() > 0.03 else 0
    p50 = int(10 ** draw.uniform(5.2, 7.6))
    flapping = draw.random() < 0.03
    return blank(
        schema.EDGES,
        from_router=start["router"],
        from_vpn=start["vpn"],
        to_router=goal["router"],
        to_vpn=goal["vpn"],
        bridge=f"b{at}-{goal['vpn']}",
        messages=messages,
        messages_estimated=messages,
        bytes=messages * 210,
        sent=messages,
        received=messages - messages // 5_000,
        direct=messages // 2,
        guaranteed=messages - messages // 2,
        peak_messages=messages // 60,
        latency_samples=messages,
        latency_p50_ns=p50 if messages else None,
        latency_p95_ns=int(p50 * draw.uniform(1.5, 4)) if messages else None,
        latency_p99_ns=int(p50 * draw.uniform(4, 12)) if messages else None,
        latency_corrected=draw.random() > 0.1 if messages else None,
        latency_error_ns=200_000 if messages else None,
        link_ups=5 if flapping else 1,
        link_downs=5 if flapping else 0,
        up_ns=STRETCHES * WIDTH * (8 if flapping else 10) // 10,
        first_ns=BEGIN,
        last_ns=BEGIN + STRETCHES * WIDTH,
        cut=draw.random() < 0.12,
        centrality=draw.random() ** 3 / 4,
    )


def _per_edge(draw: random.Random, edges: list[Row]) -> tuple[list[Row], list[Row], list[Row]]:
    rates, latencies, links = [], [], []
    for edge in edges:
        key = {
            name: edge[name]
            for name in ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
        }
        phase, swing = draw.uniform(0, 6), draw.uniform(0.1, 0.9)
        if edge["messages"]:
            for at in range(STRETCHES):
                level = 1 + swing * math.sin(at / 14 + phase) + draw.uniform(-0.2, 0.2)
                count = int(edge["messages"] / STRETCHES * max(level, 0))
                rates.append(
                    {**key, "start_ns": BEGIN + at * WIDTH, "messages": count, "bytes": count * 210,
                     "guaranteed": count // 2}
                )  # fmt: skip
            for step in range(-6, 22):
                weight = math.exp(-((step - (8 if step > 0 else 0)) ** 2) / 60) / (1 + max(step, 0))
                count = int(edge["messages"] * weight)
                if count:
                    middle = int(edge["latency_p50_ns"] * 1.13**step)
                    latencies.append({**key, "latency_ns": middle, "messages": count})
        ups = edge["link_ups"]
        for at in range(ups):
            begin = BEGIN + STRETCHES * WIDTH * at // ups
            down = None if ups == 1 else begin + STRETCHES * WIDTH * 8 // 10 // ups
            links.append({**key, "up_ns": begin, "down_ns": down, "reason": None})
    return rates, latencies, links


def _stretch(at: int) -> Row:
    level = 1_000_000 + int(500_000 * math.sin(at / 18)) + (at * 7_919 % 131) * 900
    return {
        "start_ns": BEGIN + at * WIDTH,
        "ingress": level,
        "bridged": int(level * 0.55),
        "delivered": int(level * 1.4),
        "discarded": 90_000 if 70 < at < 76 else 0,
    }


def _topic(draw: random.Random, node: Row) -> Row:
    published = int(10 ** draw.uniform(2, 6))
    return blank(
        schema.TOPICS,
        topic=f"{node['vpn']}/{draw.choice(CITIES)}/v1/{draw.randrange(99)}",
        router=node["router"],
        vpn=node["vpn"],
        published=published,
        published_bytes=published * 180,
        published_estimated=published,
        bridged_in=published // 9,
        bridged_out=published // 3,
        delivered=published * 2,
        discarded=draw.choice((0, 0, published // 400)),
    )


def _findings(draw: random.Random, nodes: list[Row], edges: list[Row]) -> dict[str, list[Row]]:
    """Findings, advice and discards, on bridges and message VPNs drawn at random."""
    on_edges = (
        ("flapping_link", "error", 5.0, "the link went down 5 times in an hour"),
        ("hot_bridge", "error", 0.042, "4.2 % of its messages were lost to congestion"),
        ("stalled_bridge", "error", 38.0, "no message crossed for 38 s while its queue grew"),
        ("over_broad", "warning", 0.61, "fares/*/v1/>, fares/oslo/>"),
        ("wasted_crossing", "warning", None, "nobody receives these messages on the far side"),
        ("cut_bridge", "info", None, "the mesh falls apart without it"),
    )
    on_nodes = (
        ("black_hole", "warning", None, "published, and matched by no subscription anywhere"),
        ("never_matched", "warning", None, "no message matched this filter"),
        (
            "head_of_line",
            "error",
            12.0,
            "one message that cannot be delivered holds up 4,112 others",
        ),
        ("articulation", "info", None, "the mesh falls apart without it"),
    )
    findings = []
    for at in range(max(len(edges) // 9, 2)):
        kind, severity, value, detail = on_edges[at % len(on_edges)]
        edge = draw.choice(edges)
        findings.append(
            blank(schema.FINDINGS, kind=kind, severity=severity, value=value, detail=detail,
                  router=edge["to_router"], vpn=edge["to_vpn"], peer_router=edge["from_router"],
                  peer_vpn=edge["from_vpn"], bridge=edge["bridge"], messages=edge["messages"] // 20,
                  bytes=edge["bytes"] // 20, last_ns=BEGIN + at * WIDTH)
        )  # fmt: skip
    for at in range(max(len(nodes) // 7, 2)):
        kind, severity, value, detail = on_nodes[at % len(on_nodes)]
        node = draw.choice(nodes)
        findings.append(
            blank(schema.FINDINGS, kind=kind, severity=severity, value=value, detail=detail,
                  router=node["router"], vpn=node["vpn"], topic=f"{node['vpn']}/v1/>",
                  client=f"app-{at}", messages=1_000 + at, bytes=180_000, last_ns=BEGIN + WIDTH)
        )  # fmt: skip
    findings.sort(key=lambda row: ("error", "warning", "info").index(row["severity"]))
    texts = {
        "flapping_link": ("look at link", "Look at the link: it goes down every few minutes.",
                          "5 downs in an hour, 12 min of it without a link.",
                          "4,200 messages an hour no longer wait or get lost."),
        "hot_bridge": ("add link", "Add a second bridge beside this one.",
                       "4.2 % of its messages were discarded: transmit congestion.",
                       "The load is halved; no discards at the load seen."),
        "over_broad": ("narrow subscription", "Subscribe to what is used instead of everything.",
                       "61 % of what crosses matches no subscription beyond.",
                       "118 MiB an hour no longer cross."),
    }  # fmt: skip
    places = ("router", "vpn", "peer_router", "peer_vpn", "bridge", "topic")
    advice: list[Row] = []
    for row in findings:
        if row["kind"] in texts:
            action, what, evidence, effect = texts[row["kind"]]
            advice.append(
                blank(schema.ADVICE, rank=len(advice) + 1, action=action, advice=what,
                      evidence=evidence, effect=effect, score=100.0 - len(advice),
                      **{name: row[name] for name in places})
            )  # fmt: skip
    discards = [
        blank(schema.DISCARDS, router=node["router"], vpn=node["vpn"], event="discard",
              reason=draw.choice(("transmit-congestion", "ttl-exceeded", "no-subscription-match")),
              place=f"q/{at}", messages=900 - 20 * at, messages_estimated=900 - 20 * at,
              bytes=180_000, example_topic="fares/oslo", first_ns=BEGIN, last_ns=BEGIN + WIDTH)
        for at, node in enumerate(nodes[:12])
    ]  # fmt: skip
    return {"findings": findings, "advice": advice, "discards": discards}


def _studies(draw: random.Random, nodes: list[Row]) -> dict[str, list[Row]]:
    """Delays, clocks, ways, structure and changes."""
    some = nodes[:25]
    joined = list(zip(some, [*some[1:], some[0]], strict=True))
    routers = sorted({node["router"] for node in some})
    return {
        "end_to_end": [
            {"origin_router": a["router"], "origin_vpn": a["vpn"], "router": b["router"],
             "vpn": b["vpn"], "messages": draw.randrange(1, 99_999), "p50_ns": 1_200_000,
             "p95_ns": draw.randrange(2_000_000, 90_000_000), "p99_ns": 99_000_000,
             "corrected": True, "error_ns": 400_000}
            for a, b in joined
        ],
        "clocks": [
            {"router": name, "reference": routers[0],
             "offset_ns": draw.randrange(-9_000_000, 9_000_000) if at else 0,
             "error_ns": 200_000, "pairs": 3, "first_ns": BEGIN if at == 1 else None,
             "last_ns": BEGIN + WIDTH if at == 1 else None, "drift_ppm": 120.5 if at == 1 else None}
            for at, name in enumerate(routers)
        ],
        "ways": [
            {"way": f"{a['router']}/{a['vpn']}>{b['router']}/{b['vpn']}", "hops": 1,
             "messages": draw.randrange(1, 99_999), "bytes": 1_000_000}
            for a, b in joined
        ],
        "lengths": [{"hops": hops, "messages": int(4e6 / 3**hops)} for hops in range(6)],
        "vpns": [
            {"router": node["router"], "vpn": node["vpn"], "component": 1,
             "articulation": draw.random() < 0.15, "centrality": draw.random() ** 3,
             "bridges_in": 2, "bridges_out": 3}
            for node in nodes
        ],
        "pairs": [
            {"router": a["router"], "vpn": a["vpn"], "other_router": b["router"],
             "other_vpn": b["vpn"], "links": 1 + at // 9, "hops": 2, "widest": 4_711}
            for at, (a, b) in enumerate(joined)
        ],
        "changes": [
            blank(schema.CHANGES, what="vpn", change=("new", "gone", "more", "less")[at % 4],
                  router=node["router"], vpn=node["vpn"],
                  measure="latency_p95_ns" if at % 3 == 0 else "ingress",
                  before=1_000_000.0 if at % 4 else None, after=2_500_000.0)
            for at, node in enumerate(some)
        ],
    }  # fmt: skip


def _plans(nodes: list[Row], edges: list[Row]) -> dict[str, list[Row]]:
    """Usage, what would be, what depends on what, and growth: of the first message VPNs and bridges."""
    used = {name: 12_345 for name in schema.USAGE.names if name.startswith(("pub", "del", "cro"))}
    place = {name: nodes[0][name] for name in ("router", "vpn")}
    edge = {name: edges[0][name] for name in schema.EDGE}
    ends = {"router": edge["to_router"], "vpn": edge["to_vpn"], "peer_router": edge["from_router"]}
    ends |= {"peer_vpn": edge["from_vpn"], "bridge": edge["bridge"]}
    day = {"day": "2026-03-01", "rows": 1}
    lost = {"pairs_lost": 3, "vpns_lost": 4, "rising": 2, "exceeding": 1, "lost_per_s": 12.5}
    rise = {"before_per_s": 10.0, "after_per_s": 25.0, "rise_factor": 2.5, "peak_factor": 1.75}
    rises = {f"rise_{name}": value for name, value in edge.items()}
    grown = {"stretches": 60, "level": 5e8, "per_day": 1e9, "per_day_low": 9e8, "per_day_high": 2e9}
    radius = dict.fromkeys(schema.BLAST_RADIUS.names[2:], 7)
    return {
        "usage": [
            blank(schema.USAGE, what="client", client="sensor-1", **day, **place, **used),
            blank(schema.USAGE, what="bridge", **day, **place, **edge, **used),
            blank(schema.USAGE, what="rest", rows=4_321, **used),
        ],
        "what_if": [
            blank(schema.WHAT_IF, kind="router", effect="summary", question="without it", **lost,
                  **rise, **rises, router=nodes[0]["router"], detail="3 pairs are apart"),
            blank(schema.WHAT_IF, kind="bridge", effect="summary", question="without it", **lost,
                  **ends, detail="3 pairs are apart"),
            blank(schema.WHAT_IF, kind="asked", effect="rise", question="double it", **ends, **rise),
        ],
        "blast_radius": [{**place, **radius}, *({"router": node["router"], "vpn": node["vpn"],
                                                 **radius} for node in nodes[1:])],
        "growth": [
            blank(schema.GROWTH, what="queue", endpoint="orders", unit="bytes", limit=5e9, days=4.5,
                  days_low=2.25, days_high=5.0, **place, **grown),
            blank(schema.GROWTH, what="bridge", unit="messages/s", reason="too short", **ends),
        ],
    }  # fmt: skip


def with_providers(contents: Contents, providers: int, links: int = 2) -> Contents:
    """The same with connectors to so many providers: each has one in some message VPN, with so many links each way."""
    rows = [
        {"router": node["router"], "vpn": node["vpn"], "connector": f"c{at}", "link": f"{way}-{n}",
         "provider": f"mqtt://broker-{at}.example.org:1883", "direction": way,
         "messages": 1_000 * (at + 1) + n, "messages_estimated": None, "bytes": 64_000,
         "direct": 400, "guaranteed": 600 + n, "redelivered": 7 if way == "out" else 0,
         "first_ns": BEGIN, "last_ns": BEGIN + WIDTH}
        for at in range(providers)
        for node in [contents.nodes[at % len(contents.nodes)]]
        for way in ("in", "out")
        for n in range(links)
    ]  # fmt: skip
    return replace(contents, providers=sorted(rows, key=lambda row: -row["messages"]))


def summary_of(contents: Contents) -> dict[str, Any]:
    """The fields of a report's summary that fit `contents`."""
    traced = [node for node in contents.nodes if node["traced"]]
    return {
        "files": 2,
        "rows": 5_000,
        "size_bytes": 80_000,
        "set_aside": [],
        "sampling": {node["router"]: 1.0 for node in contents.nodes},
        "routers": len({node["router"] for node in contents.nodes}),
        "vpns": len(contents.nodes),
        "bridges": len(contents.edges),
        "topics": contents.topic_count,
        "ingress": sum(node["ingress"] for node in traced),
        "ingress_estimated": None,
        "bridged": sum(edge["messages"] for edge in contents.edges),
        "bridged_estimated": None,
        "delivered": sum(node["delivered"] for node in traced),
        "delivered_estimated": None,
        "discarded": sum(node["discarded"] for node in traced),
        "rejected": 0,
        "first_ns": contents.span[0],
        "last_ns": contents.span[1],
        "seconds": 12.3,
        "page": "report.html",
    }
