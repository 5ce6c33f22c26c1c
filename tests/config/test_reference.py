"""The reference file, the schema of the models, and the configurations that pages show."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter.cli.app import COMMANDS, run
from vpnrouter.config.bridge import Bridge
from vpnrouter.config.load import load, read
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import Kind, bounds_of, grouped_key, kind_of, model_at
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.reference import field_docs
from vpnrouter.config.reference import reference as written_reference
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.settings_models import ClientUsername, Listener, Queue, RemoteMsgVpn

FILE = Path(__file__).resolve().parent.parent.parent / "configs" / "reference.yaml"


reference = cache(written_reference)
"""Written once: it takes a second."""


def models(model: type[Model]) -> set[type[Model]]:
    """A model and all models in it."""
    found = {model}
    for field in model.model_fields.values():
        inner = kind_of(field.annotation).model
        if inner is not None:
            found |= models(inner)
    return found


MODELS = sorted(models(RouterConfig), key=lambda model: model.__name__)


def test_file_is_up_to_date() -> None:
    """configs/reference.yaml says what the models say."""
    written = FILE.read_text(encoding="utf-8")
    assert written == reference(), (
        "regenerate it: python -m vpnrouter.config.reference > configs/reference.yaml"
    )


def test_file_is_accepted() -> None:
    """The reference file is itself a configuration without an error."""
    reading = read(FILE)
    assert reading.loaded is not None, reading.problems


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_there_and_explained(model: type[Model]) -> None:
    """Each field of each model has its string, and its key stands in the file."""
    docs = field_docs(model)
    text = reference()
    for name, field in model.model_fields.items():
        assert docs[name].endswith((".", ". Beyond: refused.")), name
        key = field.alias or name
        assert f" {key}:" in text or f"\n{key}:" in text


def test_values_are_the_defaults() -> None:
    """Every value of the reference's queue is what an empty queue has."""
    queue = yaml.safe_load(reference())["msg_vpns"]["blue"]["queues"]["orders"]
    assert Queue.model_validate(queue) == Queue()


def test_lines_are_short() -> None:
    """The file can be read beside another one."""
    assert max(map(len, reference().splitlines())) <= 100


@pytest.mark.parametrize(
    ("model", "name", "kind"),
    [
        (RouterConfig, "msg_vpns", Kind("named", MsgVpn)),
        (RouterConfig, "listeners", Kind("list", Listener)),
        (Queue, "subscriptions", Kind("list")),
        (Queue, "topic_syntax", Kind("choice", choices=("smf", "mqtt"))),
        (Queue, "max_ttl", Kind("integer")),
        (Queue, "egress_enabled", Kind("switch")),
        (Queue, "owner", Kind("text", optional=True)),
        (ClientUsername, "password", Kind("secret", optional=True)),
    ],
)
def test_kinds(model: type[RouterConfig], name: str, kind: Kind) -> None:
    """The kind of a key is read from its annotation."""
    assert kind_of(model.model_fields[name].annotation) == kind


def test_unknown_annotation() -> None:
    """An annotation that no document can hold is a mistake in a model."""
    with pytest.raises(KeyError):
        kind_of(bytes)
    with pytest.raises(TypeError):
        kind_of(set[int])


def test_bounds() -> None:
    """Bounds are those of the field; text has none."""
    assert bounds_of(Bridge.model_fields["max_ttl"]) == (1, 255)
    assert bounds_of(Bridge.model_fields["enabled"]) is None


def test_model_at() -> None:
    """A path through names and indexes leads to the model of the mapping there."""
    path = ("msg_vpns", "blue", "bridges", "b", "remote_msg_vpns", 0)
    assert model_at(RouterConfig, ()) is RouterConfig
    assert model_at(RouterConfig, path) is RemoteMsgVpn
    assert model_at(RouterConfig, path[:-1]) is None
    assert model_at(RouterConfig, (*path, "name", "x")) is None
    assert model_at(RouterConfig, ("zzz", "x", "y")) is None


@pytest.mark.parametrize(
    ("model", "flat", "grouped"),
    [
        (MsgVpn, "authentication_basic_enabled", "authentication: {basic: {enabled: …}}"),
        (MsgVpn, "bridging_tls_server_cert_ca", "bridging: {tls_server_cert: {ca: …}}"),
        (Bridge, "remote_authentication_scheme", "remote_authentication: {scheme: …}"),
        (Bridge, "remote_connection_retry_count", "remote_connection: {retry_count: …}"),
        (Queue, "partition_count", "partition: {count: …}"),
        (Queue, "reject_low_priority_msg_enabled", "reject_low_priority_msg: {enabled: …}"),
        (Queue, "redelivery_nothing", None),
        (Queue, "zzz", None),
    ],
)  # fmt: skip
def test_flat_names(model: type[RouterConfig], flat: str, grouped: str | None) -> None:
    """A SEMP name in snake case is told as the groups that it is written in."""
    assert grouped_key(model, flat) == grouped


DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```yaml\n(guaranteed_msging.*?|msg_vpns:.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = [
    (page, number, text)
    for page in ("spool.md", "configuration.md")
    for number, text in enumerate(BLOCK.findall((DOCS / page).read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(
    ("page", "number", "text"), SHOWN, ids=[f"{page}-{number}" for page, number, _ in SHOWN]
)
def test_what_is_shown_loads(page: str, number: int, text: str, tmp_path: Path) -> None:
    """Each configuration is accepted, and nothing in it is doubtful."""
    path = tmp_path / "c.yaml"
    head = 'router: {name: here}\nlisteners: [{protocol: mqtt, bind: "127.0.0.1:0"}]\n'
    path.write_text(head + text, encoding="utf-8")
    told = [one for one in read(path).problems if "this version" not in one.message]
    assert told == []


def test_there_are_examples() -> None:
    """The pattern above finds them."""
    assert {page for page, _, _ in SHOWN} == {"spool.md", "configuration.md"}


def test_commands_and_links() -> None:
    """Every command of the page exists, every page that it leads to is there."""
    text = (DOCS / "spool.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^vpnrouter (\S+)", text, re.MULTILINE))
    assert named
    assert named <= COMMANDS.keys()
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (DOCS / target).exists(), target


PAGES = ("bridges.md", "deliver-to-one.md")
ANY_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_BRIDGES = [
    (page, number, text)
    for page in PAGES
    for number, text in enumerate(ANY_BLOCK.findall((DOCS / page).read_text(encoding="utf-8")))
]
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def whole(shown: dict[str, Any]) -> dict[str, Any]:
    """A configuration around what a page shows of one message VPN."""
    if "router" in shown:
        return shown
    listener = {"protocol": "mqtt", "bind": "127.0.0.1:0", "msg_vpn": "yellow"}
    return {"router": {"name": "core"}, "listeners": [listener], "msg_vpns": {"yellow": shown}}


@pytest.mark.parametrize(
    ("page", "number", "text"),
    SHOWN_BRIDGES,
    ids=[f"{page}-{number}" for page, number, _ in SHOWN_BRIDGES],
)
def test_what_bridges_pages_show_loads(
    page: str, number: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each configuration of the page is accepted, and nothing in it is without effect."""
    monkeypatch.setenv("BRIDGE_PASSWORD", "secret")
    monkeypatch.chdir(tmp_path)
    if "certs/" in text:
        assert run(["certs", "--output", "certs", "--client", "core-bridge"]) == 0
    path = tmp_path / "shown.yaml"
    path.write_text(yaml.safe_dump(whole(yaml.safe_load(text)), sort_keys=False), encoding="utf-8")
    loaded = load(str(path))
    assert [str(problem) for problem in loaded.warnings] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Every page and file that is linked exists."""
    links = LINK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []
