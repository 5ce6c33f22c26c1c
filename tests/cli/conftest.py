"""A router in memory, for commands that ask one, and stopped ones."""

import importlib.util
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs

import pytest

import vpnrouter
from vpnrouter.errors import OperationError
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Packet

HOLD = """
import sys
from pathlib import Path
from vpnrouter.spool.rocks_store import RocksStore
store = RocksStore(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
store.close()
"""


def _loaded(name: str, place: Path) -> ModuleType:
    # Tests are no package (importlib mode), so that a module elsewhere is loaded by its path.
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


_routers = _loaded("management_routers", Path(__file__).parents[1] / "management" / "routers.py")


class Served(NamedTuple):
    """A router in memory and where its API is served."""

    router: Any
    url: str


@pytest.fixture
def here(tmp_path: Path) -> Any:
    """A router of three message VPNs with three bridges, queues and clients (`HERE` in routers.py)."""
    folder = tmp_path / "routers"
    folder.mkdir()
    return _routers.here_and_far(folder)


@pytest.fixture
def served(here: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Bridges and queues of a served router; VPNROUTER_URL says where it is."""
    with _routers.serving(here.application()) as url:
        monkeypatch.setenv("VPNROUTER_URL", url)
        yield Served(here, url)


class Stopped(NamedTuple):
    """A stopped router: its configuration and its spool, with one endpoint in it."""

    config: Path
    spool: Path

    def endpoint(self) -> bytes | None:
        """What the spool holds of the endpoint."""
        from vpnrouter.spool import keys
        from vpnrouter.spool.rocks_store import RocksStore

        store = RocksStore(self.spool, create=False)
        found = store.get(keys.endpoint(1))
        store.close()
        return found

    def write(self, value: bytes) -> None:
        """Let the spool hold this of the endpoint."""
        from vpnrouter.spool import keys
        from vpnrouter.spool.rocks_store import RocksStore
        from vpnrouter.spool.store import Batch

        store = RocksStore(self.spool)
        batch = Batch()
        batch.put(keys.endpoint(1), value)
        store.commit(batch)
        store.close()


@pytest.fixture(autouse=True)
def mask() -> Iterator[None]:
    """Commands that read a configuration set the mask of the files that their process makes."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stopped:
    """A router that was stopped cleanly."""
    monkeypatch.delenv("VPNROUTER_URL", raising=False)
    config = tmp_path / "here.yaml"
    data = {"router": {"name": "here", "data_dir": str(tmp_path / "data")}}
    config.write_text(json.dumps(data), encoding="utf-8")
    (tmp_path / "data").mkdir()
    made = Stopped(config, tmp_path / "data" / "spool")
    made.write(b'{"name":"orders"}')
    return made


@contextmanager
def _opened(spool: Path) -> Iterator[None]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(spool)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"open\n"
        yield
    finally:
        holder.communicate()


@pytest.fixture
def opened_elsewhere() -> Any:
    """A context manager: while it lasts, another process has the spool of the given directory open."""
    return _opened


class Recorded:
    """A management API whose answers are recorded: rows by path, lists in pages of at most 100.

    `asked` are method, path with its query, and body of each request; `refusal` is what changes are
    answered with, "" for yes.
    """

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str, Any]] = []
        self.refusal = ""

    def changes(self) -> list[tuple[str, str, Any]]:
        """The requests that are no mere questions."""
        return [each for each in self.asked if each[0] != "GET"]

    def answer(self, method: str, target: str, body: Any) -> dict[str, Any]:
        """The envelope of one answer."""
        self.asked.append((method, target, body))
        path, _, written = target.partition("?")
        query = {name: values[0] for name, values in parse_qs(written).items()}
        if method != "GET":
            if self.refusal:
                return refused(self.refusal)
            return {"data": body or {}, "meta": {"responseCode": 200}}
        if path not in self.answers:
            return refused(f"Unknown path {path}")
        data = self.answers[path]
        if callable(data) or isinstance(data, dict):
            data = data(query) if callable(data) else data
            return {"data": data, "meta": {"responseCode": 200}}
        start, most = int(query.get("cursor", 0)), int(query.get("count", 10))
        assert most <= 100
        meta: dict[str, Any] = {"responseCode": 200, "count": len(data)}
        if start + most < len(data):
            meta["paging"] = {"cursorQuery": str(start + most)}
        return {"data": data[start : start + most], "meta": meta}


def refused(description: str) -> dict[str, Any]:
    """The envelope of a refusal."""
    return {"meta": {"responseCode": 400, "error": {"code": 6, "description": description}}}


Answer = Callable[[str, str, bytes], bytes]
"""Method, path with its query and body of a request → body of the answer."""


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], str]]:
    """`answering(answer)` starts an HTTP server that answers by the function, and returns its URL, which VPNROUTER_URL
    has as well.
    """
    with ExitStack() as stack:

        def start(answer: Answer) -> str:
            class Handler(BaseHTTPRequestHandler):
                def handle_one(self) -> None:
                    size = int(self.headers.get("content-length") or 0)
                    body = answer(self.command, self.path, self.rfile.read(size))
                    self.send_response(200)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

                do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = handle_one  # noqa: N815

                def log_message(self, *_: object) -> None:
                    """Say nothing."""

            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            stack.callback(thread.join, 20)
            stack.callback(server.shutdown)
            url = f"http://127.0.0.1:{server.server_port}"
            monkeypatch.setenv("VPNROUTER_URL", url)
            return url

        yield start


@pytest.fixture
def recorded(answering: Callable[[Answer], str]) -> Recorded:
    """A management API with recorded answers; VPNROUTER_URL says where it is."""
    api = Recorded()
    api.url = answering(
        lambda method, target, body: json.dumps(
            api.answer(method, target, json.loads(body) if body else None)
        ).encode()
    )
    return api


class Dialogue:
    """One connection to a broker that says what a test tells it to; see `scripted`."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link

    def heard(self, size: int = 65_536) -> bytes:
        """What came, b"" at the end."""
        return self.link.recv(size)

    def say(self, *packets: Packet, level: int = 5) -> None:
        """Send packets."""
        self.link.sendall(b"".join(encode(packet, level) for packet in packets))


Script = Callable[[Dialogue], None]


@pytest.fixture
def scripted() -> Iterator[Callable[[Script], int]]:
    """`scripted(script)` starts a broker that serves one connection by `script`; returns its port."""
    threads: list[threading.Thread] = []
    failures: list[BaseException] = []

    def start(script: Script, tls: ssl.SSLContext | None = None) -> int:
        server = socket.create_server(("127.0.0.1", 0))

        def run() -> None:
            try:
                with server, server.accept()[0] as taken:
                    taken.settimeout(20)
                    with tls.wrap_socket(taken, server_side=True) if tls else taken as link:
                        script(Dialogue(link))
            except (ssl.SSLError, ConnectionError):
                pass  # a client that goes is none of these tests' business
            except BaseException as failure:  # noqa: BLE001 (told when the test ends)
                failures.append(failure)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return int(server.getsockname()[1])

    yield start
    for thread in threads:
        thread.join(20)
    assert failures == []


BROKER = """
router: {name: one, data_dir: data}
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: amqp, bind: "127.0.0.1:0", msg_vpn: blue}
msg_vpns:
  blue:
    acl_profiles:
      default: {publish_topic: {exceptions: ["secret/>"]}}
    client_usernames:
      ann: {password: right}
    queues:
      orders: {subscriptions: ["orders/>"]}
      small: {max_msg_spool_usage: 1, subscriptions: ["small/>"]}
"""


@contextmanager
def serving(text: str, folder: Path) -> Iterator[dict[str, int]]:
    """Run a router as a process of its own; yields the ports of its listeners by protocol."""
    (folder / "one.yaml").write_text(text, encoding="utf-8")
    program = "from vpnrouter.cli.app import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, "run", str(folder / "one.yaml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(vpnrouter.__file__).parents[1])},
        cwd=folder,
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.findall(r"(\w+)=127\.0\.0\.1:(\d+)", line)
            assert line.startswith("ready "), line
            yield {protocol: int(port) for protocol, port in found}
        finally:
            process.terminate()
            process.communicate(timeout=30)


@pytest.fixture(scope="session")
def broker_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The ports of a router's listeners by protocol. User ann, password right."""
    with serving(BROKER, tmp_path_factory.mktemp("broker")) as ports:
        yield ports


@pytest.fixture
def jms_example(tmp_path: Path) -> Iterator[dict[str, int]]:
    """The ports of configs/jms.yaml, started on other ports."""
    text = (Path(__file__).parents[2] / "configs/jms.yaml").read_text(encoding="utf-8")
    text, count = re.subn(r"127\.0\.0\.1:\d+\"", '127.0.0.1:0"', text)
    assert count == 3
    with serving(text, tmp_path) as ports:
        yield ports


@pytest.fixture(scope="session")
def broker(broker_ports: dict[str, int]) -> int:
    """The port of the MQTT listener of the router."""
    return broker_ports["mqtt"]


@pytest.fixture
def ann_by_amqp(broker_ports: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options that log ann in at the AMQP listener of the router."""
    monkeypatch.setenv("ANN", "right")
    port = broker_ports["amqp"]
    return ["--protocol", "amqp", "--url", f"amqp://ann@127.0.0.1:{port}", "--password-env", "ANN"]


@pytest.fixture
def ann(broker: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options that log ann in at the broker."""
    monkeypatch.setenv("ANN", "right")
    return ["--url", f"mqtt://ann@127.0.0.1:{broker}", "--password-env", "ANN"]


class FakeRouter:
    """Changes are keys of `msg_vpns` that come and go; `refuses` a document that has the named VPN."""

    def __init__(self, name: str, document: Any) -> None:
        self.name = name
        self.document = document
        self.history = [deepcopy(document)]
        self.refuses = ""
        self.away = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def config(self) -> Any:
        if self.away:
            raise OperationError(f"cannot connect to {self.name}")
        return {
            "routerName": self.name,
            "digest": str(len(self.history)),
            "document": deepcopy(self.document),
        }

    def examine(self, document: Any) -> Any:
        before, after = self.document["msg_vpns"], document["msg_vpns"]
        rows = [(name, "removed") for name in before if name not in after]
        rows += [(name, "added") for name in after if name not in before]
        return {
            "changes": [
                {"path": ["msg_vpns", name], "text": f"msg_vpns.{name}: {effect}", "effect": effect}
                for name, effect in rows
            ],
            "problems": [
                {"severity": "error", "file": "f", "line": 1, "column": 1, "message": "no"}
                for name in after
                if name == "refused"
            ],
            "digest": str(len(self.history)),
        }

    def replace_config(self, document: Any, expected: str) -> Any:
        assert expected == str(len(self.history))
        if self.refuses in document["msg_vpns"]:
            raise OperationError(f"{self.name}: the address is in use")
        self.document = deepcopy(document)
        self.history.append(deepcopy(document))
        return {"digest": str(len(self.history)), "lines": []}

    def return_config(self, digest: str) -> Any:
        self.document = deepcopy(self.history[int(digest) - 1])
        return {"digest": digest, "lines": []}

    def msg_vpns(self) -> list[Any]:
        return [{"msgVpnName": name, "msgVpnConnections": 2} for name in self.document["msg_vpns"]]

    def bridges(self) -> list[Any]:
        return []

    def queues(self) -> list[Any]:
        return []

    def connectors(self) -> list[Any]:
        return []


class MeshAtHand:
    """A mesh file of two routers, and the routers."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "mesh.yaml"
        self.path = str(self._file)
        vpns: dict[str, Any] = {"blue": {}, "old": {}}
        self.edge = FakeRouter("edge", {"router": {"name": "edge"}, "msg_vpns": vpns})
        self.core = FakeRouter("core", {"router": {"name": "core"}, "msg_vpns": {"red": {}}})
        self.write("new")

    def write(self, new: str, *, both: bool = False) -> None:
        """The file asks for message VPN `new` at edge, or at both."""
        core = f"red: {{}}, {new}: {{}}" if both else "red: {}"
        self._file.write_text(
            "routers:\n"
            f"  edge: {{url: 'http://e:1', config: {{msg_vpns: {{blue: {{}}, {new}: {{}}}}}}}}\n"
            f"  core: {{url: 'http://c:1', config: {{msg_vpns: {{{core}}}}}}}\n",
            encoding="utf-8",
        )


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MeshAtHand:
    """A mesh file that asks for another message VPN at edge than the one that is there."""
    found = MeshAtHand(tmp_path)
    routers = {"edge": found.edge, "core": found.core}
    monkeypatch.setattr("vpnrouter.cli._mesh._client", lambda asked: routers[asked.name])
    return found
