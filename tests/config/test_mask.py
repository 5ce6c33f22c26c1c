"""Secrets of plain documents: every one that the models have is masked, and finds its way back."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml

from vpnrouter.config.document_values import compact, mask, unmask
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import keys_of, kind_of
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import Secret

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"


def holds_secret(annotation: object) -> bool:
    """Whether a secret stands anywhere in a type, the models that it names left out."""
    if isinstance(annotation, type) and issubclass(annotation, Secret):
        return True
    return any(holds_secret(inner) for inner in get_args(annotation))


def examples(model: type[Model], value: Any) -> Iterator[tuple[str, Any]]:
    """A document with a value of every secret of the models, by the key that holds it."""
    for key, field in keys_of(model).items():
        kind = kind_of(field.annotation)
        wrap = {"named": lambda x: {"n": x}, "list": lambda x: [x]}.get(kind.form, lambda x: x)
        if holds_secret(field.annotation):
            yield key, {key: wrap(value)}
        elif kind.model is not None:
            for inner, document in examples(kind.model, value):
                yield f"{key}.{inner}", {key: wrap(document)}


def test_every_secret_of_the_models() -> None:
    """Whatever key takes a secret is masked, and comes back from what stands."""
    found = list(examples(RouterConfig, "hidden-value"))
    keys = [key for key, _ in found]
    assert "management.users.password" in keys
    assert "trace.otlp.headers" in keys
    assert "listeners.tls.key_password" in keys
    assert "msg_vpns.bridges.remote_msg_vpns.client_cert.password" in keys
    assert len(keys) >= 8
    for key, document in found:
        shown = mask(document)
        assert "hidden-value" not in compact(shown), key
        assert '"***"' in compact(shown), key
        assert unmask(shown, document) == []
        assert shown == document


def test_of_many_objects_every_secret_is_masked() -> None:
    """None shows the secrets of the second user, bridge or remote either."""
    remotes = [{"name": "red", "location": each, "password": "hidden-value"} for each in "hi"]
    document = {
        "management": {"users": {each: {"password": "hidden-value"} for each in ("ann", "bob")}},
        "msg_vpns": {
            vpn: {"bridges": {each: {"remote_msg_vpns": remotes} for each in ("b", "c")}}
            for vpn in ("blue", "green")
        },
    }
    shown = compact(mask(document))
    assert "hidden-value" not in shown
    assert shown.count("***") == 2 + 8


def test_references_and_removals_stay() -> None:
    """They say where a secret is and not what it is; whatever else stands there is masked."""
    for value in ({"env": "NAME"}, {"file": "/run/secret"}, None):
        for _, document in examples(RouterConfig, value):
            assert mask(document) == document
    for value in (5, ["x"], {"env": "A", "file": "B"}, {"value": "x"}, {"env": ["x"]}):
        for key, document in examples(RouterConfig, value):
            assert "***" in compact(mask(document)), (key, value)


def test_the_document_itself_is_not_touched() -> None:
    """The mask is put on a copy."""
    document = {"management": {"users": {"ann": {"password": "x"}}}}
    before = copy.deepcopy(document)
    mask(document)
    assert document == before


def test_files_of_this_project() -> None:
    """What is masked and put back is what it was."""
    for name in ("core", "edge", "reference"):
        whole = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
        shown = mask(whole)
        assert unmask(shown, whole) == []
        assert shown == whole


def remote(name: str, location: str, password: str) -> dict[str, str]:
    """A remote message VPN."""
    return {"name": name, "location": location, "password": password}


def bridge(*remotes: Any) -> Any:
    """A document with one bridge."""
    return {"msg_vpns": {"blue": {"bridges": {"x": {"remote_msg_vpns": list(remotes)}}}}}


def test_items_of_lists_are_found_by_what_they_are() -> None:
    """An item that moved keeps its secret, and none gets that of another one."""
    known = bridge(remote("red", "h:1", "one"), remote("red", "h:2", "two"))
    document = bridge(
        remote("red", "h:3", "***"),
        remote("red", "h:2", "***"),
        remote("red", "h:1", "***"),
        "no mapping",
    )
    (left,) = unmask(document, known)
    assert left == ("msg_vpns", "blue", "bridges", "x", "remote_msg_vpns", 0, "password")
    remotes = document["msg_vpns"]["blue"]["bridges"]["x"]["remote_msg_vpns"]
    assert [one["password"] for one in remotes[:3]] == ["***", "two", "one"]


def test_no_secret_goes_to_another_name() -> None:
    """A renamed user has no password yet."""
    users = {"management": {"users": {"bob": {"password": "***"}}}}
    assert unmask(users, {"management": {"users": {"ann": {"password": "x"}}}}) == [
        ("management", "users", "bob", "password")
    ]
