"""The dashboard and the alerts name metrics that there are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter.management.metrics.exposition import SECTIONS

CONFIGS = Path(__file__).resolve().parents[3] / "configs"

FAMILIES = {
    family.name: {"router", *section.labels, *family.labels}
    for section in SECTIONS.values()
    for family in section.families.values()
}

NAME = re.compile(r"\b(?:vpnrouter|process)_[a-z_]+\b")
SELECTED = re.compile(r"\b((?:vpnrouter|process)_[a-z_]+)\{([^}]*)\}")

DASHBOARD: dict[str, Any] = json.loads((CONFIGS / "grafana-dashboard.json").read_text("utf-8"))
ALERTS: dict[str, Any] = yaml.safe_load((CONFIGS / "prometheus-alerts.yaml").read_text("utf-8"))

PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]


def family_of(name: str) -> str:
    """The family that a series belongs to."""
    return re.sub(r"_(bucket|count|sum)$", "", name) if name not in FAMILIES else name


@pytest.mark.parametrize("expression", EXPRESSIONS + [rule["expr"] for rule in RULES])
def test_expression_names_what_there_is(expression: str) -> None:
    """Each name is a metric, each label one that it has, and counters are not shown as they are."""
    names = NAME.findall(expression)
    assert names
    assert {family_of(name) for name in names} <= set(FAMILIES)
    for name, labels in SELECTED.findall(expression):
        assert set(re.findall(r"(\w+)=~?\"", labels)) <= FAMILIES[family_of(name)]
    for name in names:
        if name.endswith(("_total", "_bucket")):
            assert re.search(rf"(rate|increase)\({name}", expression)
    assert expression.count("(") == expression.count(")")


def test_dashboard_can_be_imported() -> None:
    """What Grafana wants of a dashboard, and no data source of somebody else's."""
    assert DASHBOARD["id"] is None
    assert DASHBOARD["schemaVersion"] >= 36
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["type"] in {"stat", "table", "timeseries"}
        assert panel["title"]
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
        for one in [panel, *panel["targets"]]:
            assert one["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


def test_panels_do_not_overlap() -> None:
    """Each panel has its place."""
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells


ROWS: dict[str, dict[str, set[str]]] = {
    "Connectors": {
        "Messages in, by link": {"messages_total"},
        "Messages out, by link": {"delivered_messages_total"},
        "Waiting for links": {"waiting_messages", "parked_messages"},
        "Links held, refused or stopped": {"state"},
        "Discarded by links, by reason": {"discarded_messages_total"},
        "Dead letters and refusals": {"dead_letter_messages_total", "refused_messages_total"},
    }
}
"""Rows that show something of each object by its own labels: their panels, and the metrics of these."""


@pytest.mark.parametrize("row", ROWS)
def test_a_row_shows_each_object(row: str) -> None:
    """The panels below the row, up to the next one, show all that is wanted, of each link by its name."""
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    begin = titles.index(row) + 1
    below = {}
    for panel in DASHBOARD["panels"][begin:]:
        if panel["type"] == "row":
            break
        below[panel["title"]] = panel
    found = {
        title: {NAME.findall(each["expr"])[0] for each in panel["targets"]}
        for title, panel in below.items()
    }
    wanted = {
        title: {f"vpnrouter_connector_link_{name}" for name in names}
        for title, names in ROWS[row].items()
    }
    assert found == wanted
    for panel in below.values():
        for target in panel["targets"]:
            assert "{{msg_vpn}}/{{connector}} {{link}}" in target["legendFormat"]
            by = re.search(r"by \(([^)]*)\)", target["expr"])
            assert by is None or {"msg_vpn", "connector", "link"} <= set(by[1].split(", "))


def test_dashboard_is_for_any_router() -> None:
    """One chooses data source, routers and message VPNs; what belongs to a message VPN heeds that."""
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert list(variables) == ["datasource", "router", "msg_vpn"]
    for name in ("router", "msg_vpn"):
        query = variables[name]["definition"]
        assert family_of(NAME.findall(query)[0]) in FAMILIES
    for expression in EXPRESSIONS:
        for name, labels in SELECTED.findall(expression):
            assert 'router=~"$router"' in labels
            if "msg_vpn" in FAMILIES[family_of(name)]:
                assert 'msg_vpn=~"$msg_vpn"' in labels
        assert len(SELECTED.findall(expression)) == len(NAME.findall(expression))


def test_alerts() -> None:
    """Each alert has a level and says what it is about."""
    for rule in RULES:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        labels = set.union(*(FAMILIES[family_of(name)] for name in NAME.findall(rule["expr"])))
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= labels
    scrape = yaml.safe_load((CONFIGS / "prometheus.yaml").read_text("utf-8"))
    assert scrape["scrape_configs"][0]["metrics_path"] == "/metrics"
    assert scrape["rule_files"] == ["prometheus-alerts.yaml"]
