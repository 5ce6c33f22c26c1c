"""Two configurations share what is equal, and nothing else."""

import copy
from pathlib import Path
from typing import Any

import yaml

from vpnrouter.config.diff import changes, reuse
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secrets import ENVIRONMENT

CONFIGS = Path(__file__).resolve().parent.parent.parent / "configs"


def config(data: Any) -> RouterConfig:
    """The configuration of plain data."""
    return RouterConfig.model_validate(data, context={ENVIRONMENT: {"NAME": "value", "X": "value"}})


def whole() -> Any:
    """Plain data with every key."""
    return yaml.safe_load((CONFIGS / "reference.yaml").read_text(encoding="utf-8"))


def test_equal_ones_are_one() -> None:
    """The old object itself."""
    before = config(whole())
    assert reuse(before, config(whole())) is before


def test_what_changed_is_new_and_the_rest_is_not() -> None:
    """The result equals what was wanted, shares what it can, and neither is changed."""
    before = config(whole())
    data = whole()
    data["msg_vpns"]["blue"]["queues"]["more"] = {}
    (name, *_) = data["msg_vpns"]["blue"]["queues"]
    data["msg_vpns"]["blue"]["max_subscription_count"] = 17
    wanted = config(copy.deepcopy(data))
    made = reuse(before, wanted)
    assert made == wanted == config(data)
    assert before == config(whole())
    old, new = before.msg_vpns["blue"], made.msg_vpns["blue"]
    assert new is not old
    assert new.queues[name] is old.queues[name]
    assert new.client_usernames is old.client_usernames
    assert made.listeners is before.listeners
    assert [change.path for change in changes(before, made)] == [
        change.path for change in changes(before, wanted)
    ]


def test_order_and_origin_are_no_equality() -> None:
    """Names in another order, and a secret that comes from elsewhere, are the new ones."""
    one = {"router": {"name": "r"}, "msg_vpns": {"a": {}, "b": {}}}
    two = {"router": {"name": "r"}, "msg_vpns": {"b": {}, "a": {}}}
    before = config(one)
    made = reuse(before, config(two))
    assert list(made.msg_vpns) == ["b", "a"]
    assert made.msg_vpns["a"] is before.msg_vpns["a"]

    def user(password: Any) -> Any:
        return {"router": {"name": "r"}, "management": {"users": {"ann": {"password": password}}}}

    made = reuse(config(user("value")), config(user({"env": "NAME"})))
    assert made.management.users["ann"].password.origin.kind == "env"
    made = reuse(config(user({"env": "X"})), config(user({"env": "NAME"})))
    assert made.management.users["ann"].password.origin.name == "NAME"


def test_lists_that_grow_and_shrink() -> None:
    """A list of another length is the new one; of the same length its equal items are shared."""

    def listeners(*ports: int) -> Any:
        items = [{"protocol": "mqtt", "bind": f"127.0.0.1:{port}"} for port in ports]
        return {"router": {"name": "r"}, "listeners": items}

    before = config(listeners(1, 2))
    assert reuse(before, config(listeners(1))) == config(listeners(1))
    made = reuse(before, config(listeners(1, 3)))
    assert made.listeners[0] is before.listeners[0]
    assert made == config(listeners(1, 3))
