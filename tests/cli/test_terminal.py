"""Texts of strangers go through every command and never command the terminal."""

import ast
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import httpx
import pytest

import vpnrouter
from vpnrouter.cli.app import COMMANDS, run
from vpnrouter.wire.mqtt.packets import Connack, Publish, Suback
from vpnrouter.wire.mqtt.properties import Properties

HOSTILE: Final = (
    "\x1b[2J\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x9b2J\x9d0;x\x9c\x7f\x85\u202e\u2066\u2028"
    "\r\nFORGED: all is well\t"
)
"""Escape sequences, new lines, and what turns the direction of writing; a line that is not ours."""

COUNTED: Final = {"discarded", "discardedRx", "discardedTx", "refused"}
"""Attributes with counts by name."""

SHOWN: Final = ("vpns", "clients", "subscriptions", "queues", "bridges", "topology", "events")


def harmless(written: str) -> None:
    """Raise AssertionError for what steers a terminal, or stands on a line of its own and is not ours."""
    bad = {one for one in written if not (one.isprintable() or one == "\n")}
    assert not bad, written
    assert not re.search("^FORGED", written, re.MULTILINE), written


def poisoned(value: Any, key: str = "") -> Any:
    """An answer with every text made hostile."""
    match value:
        case str():
            return value + HOSTILE
        case list():
            return [poisoned(one) for one in value]
        case dict() if key in COUNTED:
            return {HOSTILE: 7, **value}
        case dict():
            return {name: poisoned(one, name) for name, one in value.items()}
        case _:
            return value


EVENT: Final = {
    "eventId": 1,
    "timeNs": 1_700_000_000_000_000_000,
    "level": "error",
    "scope": "VPN",
    "event": "E",
    "msgVpnName": "blue",
    "name": "n",
    "text": "t",
}


@pytest.fixture
def hostile(served: Any, answering: Any) -> str:
    """A router's management API with hostile texts in every answer; VPNROUTER_URL says where it is."""

    def answer(method: str, path: str, body: bytes) -> bytes:
        target = quote(unquote(path).replace(HOSTILE, ""), safe="/?&=%,*")
        headers = {"content-type": "application/json"}
        found = httpx.request(method, served.url + target, content=body, headers=headers).content
        if "/events" in target:
            found = json.dumps({"data": [EVENT], "meta": {"responseCode": 200}}).encode()
        try:
            said = json.loads(found)
        except ValueError:
            return found
        said["data"] = poisoned(said.get("data", {}))
        if "error" in said["meta"]:
            said["meta"]["error"] = poisoned(said["meta"]["error"])
        return json.dumps(said).encode()

    url: str = answering(answer)
    return url


FORMS: Final = [[], ["--wide"], ["--detail"], ["--stats"], ["--balance"], ["--json"]]


@pytest.mark.parametrize("what", SHOWN)
def test_show(what: str, hostile: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Tables, details, counts, balance and JSON of everything, and the names that a wrong name is told."""
    for form in FORMS:
        if form and form != ["--json"] and what in {"topology", "events"}:
            continue
        if form == ["--balance"] and what not in {"queues", "bridges"}:
            continue
        run(["show", what, *form])
        out, err = capfd.readouterr()
        assert "FORGED" in out, (what, form, err)
        harmless(out + err)
    run(["show", what, "no-such-name"])
    harmless("".join(capfd.readouterr()))


@pytest.mark.parametrize("what", SHOWN)
def test_watch(
    what: str, hostile: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables that are watched show no control characters either, the second look with rates."""
    from vpnrouter.cli import _watch

    looks = iter([None])

    def sleep(_: float) -> None:
        if next(looks, 1):
            raise KeyboardInterrupt

    monkeypatch.setattr(_watch, "sleep", sleep)
    for form in ([], ["--detail"], ["--stats"]):
        if form and what in {"topology", "events"}:
            continue
        looks = iter([None])
        assert run(["show", what, "--watch", "0.5", *form]) == 0
        out, err = capfd.readouterr()
        assert out.count("^C ends") == 2
        harmless(out + err)


@pytest.mark.parametrize(
    "words",
    [
        ["events"],
        ["events", "--json"],
        ["queue", "browse", "orders" + HOSTILE, "--msg-vpn", "blue" + HOSTILE],
        ["queue", "browse", "orders" + HOSTILE, "--msg-vpn", "blue" + HOSTILE, "--json"],
        ["queue", "browse", "none"],
        ["queue", "purge", "none", "--yes"],
        ["bridge", "disable", "to-a" + HOSTILE],
        ["bridge", "enable", "none"],
        ["bridge", "reconnect", "to-a" + HOSTILE],
        ["bridge", "pause", "to-a" + HOSTILE],
        ["connector", "pause", "none" + HOSTILE, "--link", "in" + HOSTILE],
        ["client", "disconnect", "c1" + HOSTILE, "--msg-vpn", "blue"],
        ["client", "disconnect", "none"],
        ["queue", "replay", "orders" + HOSTILE, "--msg-vpn", "blue" + HOSTILE],
    ],
)
def test_commands_to_a_router(
    words: list[str], hostile: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Answers, refusals and lists of names of a router."""
    run(words)
    out, err = capfd.readouterr()
    assert out + err
    harmless(out + err)


def test_on_a_terminal(hostile: str) -> None:
    """Where colours are used, nothing of a stranger's is among them."""
    for words in (["clients", "--detail"], ["bridges", "--stats"], ["topology"], ["events"]):
        written = _in_terminal(["show", *words], hostile)
        assert "FORGED" in written
        # Colours, and the width of the lines, are rich's.
        harmless(re.sub(r"\x1b\[[0-9;]*m", "", written).replace("\r\n", "\n"))


def _in_terminal(words: list[str], url: str) -> str:
    main, side = pty.openpty()
    program = "from vpnrouter.cli.app import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=side,
        stdout=side,
        stderr=side,
        env=os.environ
        | {"VPNROUTER_URL": url, "TERM": "xterm-256color", "COLUMNS": "400"}
        | {"PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])},
    ):
        os.close(side)
        found = b""
        while True:
            try:
                part = os.read(main, 65_536)
            except OSError:
                break
            if not part:
                break
            found += part
    os.close(main)
    return found.decode()


def test_completion(hostile: str, capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """A shell is offered no name that it or the terminal would obey."""
    monkeypatch.setenv("_VPNROUTER_COMPLETE", "complete_bash")
    for what in SHOWN:
        monkeypatch.setenv("COMP_WORDS", f"vpnrouter show {what} ")
        monkeypatch.setenv("COMP_CWORD", "3")
        run([])
        out, err = capfd.readouterr()
        assert "FORGED" not in out
        harmless(out + err)


YAML: Final = json.dumps(
    {
        "router": {"name": "here", HOSTILE: 1},
        "msg_vpns": {
            "a" + HOSTILE: {"queues": {"q" + HOSTILE: {"owner": HOSTILE, "none": HOSTILE}}},
            "b": {
                "acl_profiles": {HOSTILE: {}},
                "queues": {"q": {"subscriptions": ["#/a" + HOSTILE], "access_type": HOSTILE}},
                "bridges": {HOSTILE: {"remotes": [{"msg_vpn": HOSTILE, "location": HOSTILE}]}},
            },
        },
        HOSTILE: HOSTILE,
    }
)
"""JSON is YAML."""


def test_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Keys and values of a YAML file, in what is wrong with it, whoever reads it; and its own name."""
    folder = tmp_path / f"a{HOSTILE.replace('/', '')}"
    folder.mkdir()
    config, mesh, broken = folder / "c.yaml", folder / "m.yaml", folder / "b.yaml"
    config.write_text(YAML, encoding="utf-8")
    mesh.write_text(json.dumps({"routers": {HOSTILE: {"url": HOSTILE, "config": {}}}}))
    broken.write_text('a: "\\x1b[2J\n b: [\x1b]52;c;x\x07', encoding="utf-8")
    for words in (
        ["check", str(config), str(mesh), str(broken)],
        ["check", str(config), "--json"],
        ["config", "show", str(config)],
        ["config", "forget", str(broken), HOSTILE, "--yes"],
        ["explain", str(config), "--at", "here/b", "--topic", "a"],
        ["explain", str(config), "--at", "x/b" + HOSTILE, "--topic", HOSTILE],
        ["run", str(config)],
        ["run", str(broken)],
        ["plan", str(mesh)],
        ["apply", str(mesh), "--yes"],
        ["drift", str(mesh)],
        ["spool", "verify", str(config)],
        ["spool", "restore", str(config), str(folder)],
        ["report", str(folder), "--output", str(folder / "out")],
        ["simulate", "score", "--truth", str(config), "--report", str(folder)],
        ["certs", "--output", str(folder / "certs"), "--name", "one"],
        ["certs", "--output", str(folder / "certs"), "--name", "one"],
        ["certs", "--output", str(folder / "certs"), "--name", HOSTILE],
    ):
        run(words)
        out, err = capfd.readouterr()
        assert out + err, words
        if "Usage:" not in err:  # what somebody typed may come back to them as it is
            harmless(out + err)


def test_an_explanation(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The topic that is asked about, as a tree and as JSON."""
    config = tmp_path / "c.yaml"
    config.write_text(
        "router: {name: here}\nmsg_vpns: {b: {client_usernames: {ann: {password: x}}}}\n"
    )
    for form in ([], ["--json"]):
        run(["explain", str(config), "--at", "here/b", "--topic", f"a/{HOSTILE}/b", *form])
        out, err = capfd.readouterr()
        assert "FORGED" in out, err
        harmless(out + err)


@pytest.mark.parametrize("form", ["topic", "text", "json", "hex"])
def test_sub(form: str, scripted: Callable[..., int], capfd: pytest.CaptureFixture[str]) -> None:
    """Topic, payload and user properties of a message, and what the broker says of itself."""

    def script(dialogue: Any) -> None:
        dialogue.heard()
        dialogue.say(Connack(properties=Properties(reason_string="fine" + HOSTILE)))
        dialogue.heard()
        dialogue.say(
            Suback(1, [0], properties=Properties(reason_string=HOSTILE)),
            Publish(
                f"a{HOSTILE}".encode(),
                HOSTILE.replace("\n", "").encode(),
                properties=Properties(content_type=HOSTILE, user_properties=[(HOSTILE, HOSTILE)]),
            ),
        )
        dialogue.heard()

    port = scripted(script)
    run(["sub", "#", "--format", form, "--count", "1", "--url", f"mqtt://127.0.0.1:{port}"])
    out, err = capfd.readouterr()
    assert ("46 4f 52 47 45 44" if form == "hex" else "FORGED") in out, err
    harmless(out.replace("\t", "") + err)


def test_a_broker_that_refuses(
    scripted: Callable[..., int], capfd: pytest.CaptureFixture[str]
) -> None:
    """The reason of a broker that refuses a client is printed as one line."""

    def script(dialogue: Any) -> None:
        dialogue.heard()
        dialogue.say(Connack(reason_code=0x87, properties=Properties(reason_string=HOSTILE)))
        dialogue.heard()

    for words in (["sub", "#"], ["pub", "a", "x"]):
        port = scripted(script)
        assert run([*words, "--url", f"mqtt://127.0.0.1:{port}"]) == 1
        err = capfd.readouterr().err
        assert "FORGED" in err
        harmless(err)


WRITERS: Final = {
    "vpnrouter/cli/_output.py": "the one place where commands write lines",
    "vpnrouter/cli/_format.py": "the one console of commands",
    "vpnrouter/config/reference.py": "a tool of this repository, with texts of its own",
    "vpnrouter/demo/progress.py": "its own routers' names, which are in the code",
    "vpnrouter/demo/client_processes.py": "JSON between the demo's own processes",
    "vpnrouter/demo/summary.py": "its own routers' names, which are in the code",
    "vpnrouter/server/crash_points.py": "points of a test that are in the code",
    "vpnrouter/server/events/log.py": "lines of events, whose texts are printable",
    "vpnrouter/server/events/event_context.py": "a line of an event, whose texts are printable",
    "vpnrouter/server/otlp.py": "one line, printable",
    "vpnrouter/server/run.py": "the ready line: router names and addresses",
    "vpnrouter/tui/explainer.py": "texts of explain/render.py, drawn by the screens' lines",
}
"""Modules that write to a terminal, and why that is safe."""


def test_nobody_else_writes_to_a_terminal() -> None:
    """A new command cannot forget it: only these modules print, or make a console."""
    root = Path(vpnrouter.__file__).parent
    found = set()
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.unparse(node) if isinstance(node, (ast.Call, ast.Attribute)) else ""
            if re.match(r"print\(|(rich\.console\.)?Console\(|(typer|click)\.s?echo\(", text) or (
                isinstance(node, ast.Attribute)
                and re.fullmatch(r"sys\.std(out|err)(\.buffer)?\.write(lines)?", text)
            ):
                found.add(path.relative_to(root.parent).as_posix())
    assert found <= set(WRITERS), sorted(found - set(WRITERS))


def test_every_command_is_here() -> None:
    """A command that is added is fed hostile texts here, or said to show none."""
    fed = set(re.findall(r'\["([a-z-]+)"', Path(__file__).read_text(encoding="utf-8")))
    own = {"completion", "demo", "hash-password", "tui"}
    assert set(COMMANDS) <= fed | own
