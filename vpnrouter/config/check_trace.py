"""Checks of the trace filters, which lean on the rest of a configuration."""

from vpnrouter.config.filters import FilterRules, check_filters
from vpnrouter.config.findings import Findings
from vpnrouter.config.problem import Path
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.trace_filter import TraceFilter


def check_trace(found: Findings, config: RouterConfig) -> None:
    """Tell filters that do not parse, fit nothing, or are never asked."""
    trace = config.trace
    if trace is None:
        return
    names: dict[str, int] = {}
    whole = ""
    for index, one in enumerate(trace.filters):
        path: Path = ("trace", "filters", index)
        name = one.trace_filter_name
        if name in names:
            found.error(
                (*path, "trace_filter_name"),
                f"the filter at index {names[name]} is named {name} too",
            )
        names.setdefault(name, index)
        _check_filter(found, path, one)
        if not one.enabled:
            continue
        if whole:
            found.warning(
                (*path, "trace_filter_name"), f"never asked: {whole} before it fits every message"
            )
        elif not (one.subscriptions or one.msg_vpns or one.client_usernames or one.client_names):
            whole = name


def _check_filter(found: Findings, path: Path, one: TraceFilter) -> None:
    texts = [
        ((*path, "subscriptions", index), text) for index, text in enumerate(one.subscriptions)
    ]
    for place, filter_ in check_filters(found, texts, FilterRules(one.topic_syntax)):
        if filter_.share:
            found.error(place, "a trace filter looks at topics, which no share takes part in")
    for index, vpn in enumerate(one.msg_vpns):
        if not found.is_written(("msg_vpns", vpn)):
            found.error((*path, "msg_vpns", index), f"there is no message VPN {vpn}")
    for index, text in enumerate(one.client_names):
        if "*" in text[:-1]:
            found.warning(
                (*path, "client_names", index), "a * that is not at the end is a letter like others"
            )
