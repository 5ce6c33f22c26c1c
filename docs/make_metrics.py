"""Writes the tables of docs/metrics.md from the families that the router shows: `python docs/make_metrics.py`."""

from pathlib import Path
from typing import Final

from vpnrouter.management.metrics.exposition import SECTIONS

PAGE: Final = Path(__file__).resolve().parent / "metrics.md"

BEGIN: Final = "<!-- made by docs/make_metrics.py -->\n"
END: Final = "<!-- end -->\n"

TITLES: Final = {
    "router": "The router",
    "process": "The process",
    "loop": "The event loop",
    "listener": "Listeners",
    "spool": "The message spool",
    "trace": "Routing traces",
    "trace_upload": "Uploads of trace files",
    "msg_vpn": "Message VPNs",
    "bridge": "Bridges",
    "connector": "Connectors",
    "connector_link": "Links of connectors",
    "queue": "Queues, topic endpoints, parking lots, queues of connectors' links",
    "left_out": "What is left out",
}


def tables() -> str:
    """All families, by section."""
    parts = []
    for name, section in SECTIONS.items():
        parts.append(f"\n### {TITLES[name]}\n\n")
        labels = ", ".join(f"`{label}`" for label in ("router", *section.labels))
        parts.append(f"Labels: {labels}.\n\n| name | type | further labels | meaning |\n")
        parts.append("|---|---|---|---|\n")
        for family in section.families.values():
            more = ", ".join(f"`{label}`" for label in family.labels)
            kind = family.kind + (", where not 0" if family.sparse else "")
            parts.append(f"| `{family.name}` | {kind} | {more} | {family.help} |\n")
    return "".join([*parts, "\n"])


def page(text: str) -> str:
    """The text of the page with its tables as they should be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + tables() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
