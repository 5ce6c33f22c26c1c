"""`vpnrouter explain CONFIG… --at ROUTER/VPN --topic T`: where does a message go, and why?"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from vpnrouter.cli._output import print_json, print_notes
from vpnrouter.cli._router_access import CaFile, PasswordFile, User, connect

if TYPE_CHECKING:
    from vpnrouter.config.router import Loaded
    from vpnrouter.explain.live import Live
    from vpnrouter.explain.request import ExplainRequest, Explanation

_WRONG_USE: Final = 2
_WIDTH: Final = 10_000
_YAML: Final = frozenset({".yaml", ".yml"})


Sources = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="CONFIG... | TRACES...",
        help="Routers' YAML files; with --trace, trace files and their directories as well.",
        show_default=False,
    ),
]
At = Annotated[str, typer.Option(metavar="ROUTER/VPN", help="Where the message is published.")]
Topic = Annotated[str, typer.Option(metavar="TOPIC", help="Its topic.")]
Mode = Annotated[str, typer.Option(help="direct or persistent.")]
ClientUsername = Annotated[
    str, typer.Option(metavar="NAME", help="Who publishes; else one who may.")
]
ClientAddress = Annotated[str, typer.Option(metavar="IP", help="From where, for connect rules.")]
Size = Annotated[int, typer.Option(metavar="BYTES", help="Bytes of its payload.")]
Payload = Annotated[
    str, typer.Option(metavar="TEXT", help="Its payload, for links that change messages.")
]
Prop = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="NAME=VALUE", help="A user property, for selectors."),
]
Subscriber = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROUTER/VPN=FILTER[@QOS]", help="A client that subscribes, in MQTT's dialect."
    ),
]
Trace = Annotated[str, typer.Option(metavar="ID", help="A message that really went: its trace id.")]
ShowAll = Annotated[
    bool, typer.Option("--all", help="Every place where it does not come, however many.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
NoOverlay = Annotated[
    bool,
    typer.Option(
        "--no-overlay", help="Leave out what was changed by the management API of the routers."
    ),
]
Url = Annotated[
    list[str] | None,
    typer.Option(help="A running router's http listener, to ask it; once for each router."),
]


def command(
    sources: Sources = None,
    at: At = "",
    topic: Topic = "",
    mode: Mode = "direct",
    client_username: ClientUsername = "",
    client_address: ClientAddress = "",
    size: Size = 0,
    payload: Payload = "",
    prop: Prop = None,
    subscriber: Subscriber = None,
    trace: Trace = "",
    show_all: ShowAll = False,
    as_json: AsJson = False,
    no_overlay: NoOverlay = False,
    url: Url = None,
    user: User = "",
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
) -> None:
    """Tell where a message goes: over which bridges, into which queues, to whom, and which rule decided.

    A copy of the mesh is made in memory from the configurations, and a message is sent through it; nothing is
    started or changed. With --url running routers tell their configuration, clients and queues. With
    --trace the way of a message that really went is put together from trace files.

    Exit code 0 when it is told, 1 when there is no such trace or no answer, 2 for a wrong question or a
    configuration that is refused.
    """
    from vpnrouter.explain.request import UsageError

    paths = sources or []
    configs = [path for path in paths if not trace or path.suffix in _YAML]
    traces = [path for path in paths if path not in configs]
    try:
        mesh = _loaded(configs, overlay=not no_overlay)
        live = _live(url or [], user, password_file, ca_file)
        if live is not None:
            mesh = [*mesh, *live.mesh]
        if trace:
            explanation = _traced(trace, traces, mesh)
        else:
            question = _question(
                at,
                topic,
                mode=mode,
                client_username=client_username,
                client_address=client_address,
                size=size,
                payload=payload,
                prop=prop,
                subscriber=subscriber,
            )
            explanation = _explained(mesh, question, live, everything=show_all)
    except UsageError as error:
        print_notes(f"vpnrouter: {error}")
        raise typer.Exit(_WRONG_USE) from error
    _show(explanation, as_json=as_json)


def _loaded(configs: list[Path], *, overlay: bool) -> "list[Loaded]":
    """The configurations. Raises ConfigError that lists what is wrong in all of them."""
    from vpnrouter.config.load import read
    from vpnrouter.errors import ConfigError

    readings = [read(path, overlay=overlay) for path in configs]
    problems = [
        str(found)
        for reading in readings
        for found in reading.problems
        if reading.loaded is None and found.severity == "error"
    ]
    if problems:
        raise ConfigError(problems)
    return [reading.loaded for reading in readings if reading.loaded is not None]


def _live(
    urls: list[str], user: str, password_file: Path | None, ca_file: Path | None
) -> "Live | None":
    if not urls:
        return None
    from contextlib import ExitStack

    from vpnrouter.explain.live import live_mesh

    with ExitStack() as stack:
        clients = [stack.enter_context(connect(url, user, password_file, ca_file)) for url in urls]
        return live_mesh(clients)


def _question(
    at: str,
    topic: str,
    mode: str,
    client_username: str,
    client_address: str,
    size: int,
    payload: str,
    prop: list[str] | None,
    subscriber: list[str] | None,
) -> "ExplainRequest":
    from vpnrouter.explain.request import (
        ExplainRequest,
        UsageError,
        parse_place,
        parse_property,
        parse_subscriber,
    )

    if not at or not topic:
        raise UsageError("--at ROUTER/VPN and --topic say what is asked; or --trace which message")
    router, msg_vpn = parse_place(at)
    return ExplainRequest(
        router,
        msg_vpn,
        topic,
        mode=mode,
        client_username=client_username,
        client_address=client_address,
        size=size,
        payload=payload,
        properties=tuple(parse_property(text) for text in prop or ()),
        subscribers=tuple(parse_subscriber(text) for text in subscriber or ()),
    )


def _explained(
    mesh: "list[Loaded]", question: "ExplainRequest", live: "Live | None", *, everything: bool
) -> "Explanation":
    from dataclasses import replace

    from vpnrouter.explain.explain import explain
    from vpnrouter.explain.request import UsageError

    if not mesh:
        raise UsageError("which routers? give their CONFIG files, or --url of running ones")
    return explain(mesh, replace(question, all_misses=everything), live)


def _traced(trace: str, traces: list[Path], mesh: "list[Loaded]") -> "Explanation":
    from vpnrouter.errors import OperationError
    from vpnrouter.explain.explain import explain_trace
    from vpnrouter.explain.request import UsageError
    from vpnrouter.explain.trace_files import parse_trace_id, read_trace

    trace_id = parse_trace_id(trace)
    if not traces:
        raise UsageError("--trace needs the trace files, or their directory")
    found = read_trace(traces, trace_id)
    if not found.events:
        raise OperationError(
            f"no row of trace {trace_id} in {found.files:,} trace file{'' if found.files == 1 else 's'};"
            " only messages that were picked for tracing have rows"
        )
    explanation = explain_trace(trace_id, found.events, mesh)
    explanation.notes += found.notes
    return explanation


def _show(explanation: "Explanation", *, as_json: bool) -> None:
    if as_json:
        print_json(explanation.as_dict(), 2)
        return
    from vpnrouter.cli._format import console_for
    from vpnrouter.explain.render import tree

    # What is read by other programs keeps one line for each step.
    console_for(sys.stdout, markup=True, width=_WIDTH).print(tree(explanation))
