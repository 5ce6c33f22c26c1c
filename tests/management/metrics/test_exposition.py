"""The whole page: its names, labels and bounds."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import trio
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from vpnrouter import limits
from vpnrouter.management.metrics import families as rows
from vpnrouter.management.metrics.exposition import (
    SECTIONS,
    Exposition,
)

ROOT = Path(__file__).resolve().parents[3]

KINDS: dict[str, Any] = {
    "router": rows.RouterFigures,
    "process": rows.ProcessFigures,
    "listener": rows.ListenerFigures,
    "spool": rows.SpoolFigures,
    "loop": rows.LoopFigures,
    "trace": rows.TraceFigures,
    "trace_upload": rows.UploadFigures,
    "left_out": rows.LeftOutFigures,
}

LABELS = {
    *(
        "router",
        "msg_vpn",
        "bridge",
        "connector",
        "link",
        "queue",
        "direction",
        "reason",
        "state",
        "le",
        "kind",
    ),
    *("protocol", "bind", "version", "build", "python", "remote_router", "remote_msg_vpn"),
    *("remote_address", "establisher", "encrypted", "work"),
}
"""All labels that there are: none of a client, topic, subscription or message."""

FAMILIES = {
    family.name: (section, family)
    for section in SECTIONS.values()
    for family in section.families.values()
}


async def page(source: Any, **options: Any) -> str:
    """The page that tells of `source`."""
    return await Exposition().page(source, "here", options.pop("sees", None), **options)


@pytest.mark.parametrize("name", KINDS)
def test_rows_fit_their_families(name: str) -> None:
    """Values are found by their place: fields and families have one order."""
    assert KINDS[name]._fields == SECTIONS[name].names


def test_names() -> None:
    """Names say whose they are, what they count and in which unit; none is there twice."""
    count = sum(len(section.families) for section in SECTIONS.values())
    assert len(FAMILIES) == count
    for name, (_, family) in FAMILIES.items():
        assert name.startswith(("vpnrouter_", "process_"))
        assert name.endswith("_total") == (family.kind == "counter")
        assert (family.kind == "histogram") == (family.split == "le")
        assert family.help.endswith(".")
        assert "\n" not in family.help


async def test_page(figures: Any) -> None:
    """Everything documented is there, with its labels, type and help, and nothing else."""
    found = list(text_string_to_metric_families(await page(figures)))
    for one in found:
        name = one.name if one.type != "counter" else f"{one.name}_total"
        section, family = FAMILIES[name]
        assert (one.type, one.documentation) == (family.kind, family.help)
        for sample in one.samples:
            labels = {"router", *section.labels, *family.labels}
            if one.type == "histogram" and not sample.name.endswith("_bucket"):
                labels.discard("le")
            assert set(sample.labels) == labels
            assert labels <= LABELS
            assert sample.labels["router"] == "here"
    assert len(found) == len(FAMILIES)
    names = {
        sample.labels["msg_vpn"]
        for one in found
        for sample in one.samples
        if "msg_vpn" in sample.labels
    }
    assert names == set(figures.names)


async def test_openmetrics(figures: Any) -> None:
    """The stricter format is read by its own parser."""
    text = await page(figures, openmetrics=True)
    found = list(openmetrics_parser.text_string_to_metric_families(text))
    assert len(found) == len(FAMILIES)


async def test_what_a_user_of_one_message_vpn_sees(figures: Any) -> None:
    """Series of this message VPN, and nothing of others nor of the router as a whole."""
    text = await page(figures, sees=lambda name: name == "blue")
    seen = {
        (sample.labels.get("msg_vpn", ""), one.name)
        for one in text_string_to_metric_families(text)
        for sample in one.samples
    }
    assert {name for name, _ in seen} == {"blue", ""}
    assert {name for msg_vpn, name in seen if not msg_vpn} == {"vpnrouter_metrics_left_out"}


@pytest.mark.parametrize(
    ("bound", "kind", "name"),
    [
        ("METRICS_QUEUES", "queue", "vpnrouter_queue_messages"),
        ("METRICS_BRIDGES", "connector_link", "vpnrouter_connector_link_waiting_messages"),
    ],
)
async def test_bounds(figures: Any, bound: str, kind: str, name: str) -> None:
    """Beyond a bound objects have no series, and their number has one."""
    most = getattr(limits, bound)
    figures.queue_count = most // 2 + 4
    text = await page(figures)
    assert text.count(f"\n{name}{{") == most
    assert f'vpnrouter_metrics_left_out{{router="here",kind="{kind}"}} 8\n' in text


async def test_labels_are_kept_within_bounds(figures: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that come and go do not fill the memory."""
    monkeypatch.setattr(limits, "METRICS_LABELS", 10)
    exposition = Exposition()
    for number in range(30):
        figures.names = [f"v-{number}"]
        await exposition.page(figures, "here", None)
        assert len(exposition._labels) <= 14


async def test_others_have_their_turn(figures: Any) -> None:
    """A page of many queues is made in portions."""
    figures.queue_count = 2_000
    done: list[int] = []

    async def other() -> None:
        while True:
            done.append(1)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await page(figures)
        nursery.cancel_scope.cancel()
    assert len(done) > 3


def test_documentation_has_every_family() -> None:
    """docs/metrics.md is what `python docs/make_metrics.py` writes."""
    made = runpy.run_path(str(ROOT / "docs" / "make_metrics.py"))
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert made["page"](text) == text, "run python docs/make_metrics.py"
