"""Tests of the table of kinds: every key of the models has its attribute, its path or its reason."""

from collections.abc import Iterator
from typing import Any

import pytest
import solace_semp_config

from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import keys_of, kind_of
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.management.config.kinds import KINDS, MSG_VPN, children_of

NEWER = {
    "deliveryDelay",
    "partitionCount",
    "partitionRebalanceDelay",
    "partitionRebalanceMaxHandoffTime",
    "redeliveryDelayEnabled",
    "redeliveryDelayInitialInterval",
    "redeliveryDelayMaxInterval",
    "redeliveryDelayMultiplier",
    "respectDmqEligibleEnabled",
    "topicFilterEnabled",
    "topicFilterSubscription",
}
"""Attributes that the field got after the client library was made."""


def leaves(model: type[Model], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of a model that hold no further keys."""
    for key, info in keys_of(model).items():
        kind = kind_of(info.annotation)
        # A threshold is one attribute with two numbers.
        if kind.form == "model" and kind.model is not None and not key.endswith("_threshold"):
            yield from leaves(kind.model, (*above, key))
        else:
            yield (*above, key)


def homes(kind: Any) -> set[tuple[str, ...]]:
    """Where the children of a kind stand in it."""
    return {each.store.home for each in children_of(kind) if not each.above}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_every_key_of_a_model_is_decided(kind: Any) -> None:
    """Every key of a model is decided."""
    if kind.model is None:
        assert not kind.values
        return
    mapped = {each.keys for each in kind.values}
    for path in leaves(kind.model):
        reason = kind.left.get(".".join(path))
        assert (path in mapped) != (reason is not None), path
        if reason == "objects of their own":
            assert path in homes(kind), path


def test_every_object_of_a_message_vpn_has_paths() -> None:
    """Every object of a message vpn has paths."""
    named = {
        (key,) for key, info in keys_of(MsgVpn).items() if kind_of(info.annotation).form == "named"
    }
    assert named == homes(MSG_VPN)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_names_are_the_fields_or_marked_as_ours(kind: Any) -> None:
    """Names are the field's or marked as ours."""
    title = kind.title[0].upper() + kind.title[1:]
    known = getattr(solace_semp_config, title, None)
    if known is None:
        newer = kind.title == "msgVpnReplayLogTopicFilterSubscription"
        assert newer or all(each.ours or each.identifying for each in kind.attributes.values())
        return
    fields = set(known.attribute_map.values())
    for each in kind.attributes.values():
        assert each.ours != (each.name in fields | NEWER), each.name
    above = {name for outer in kind.chain[:-1] for name in outer.key_names}
    assert fields <= {*kind.attributes, *kind.absent, *kind.tolerated, *above}
    assert not set(kind.absent) & set(kind.attributes)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_the_fields_default_is_a_value_of_the_attribute(kind: Any) -> None:
    """The field's default is a value of the attribute."""
    for each in kind.values:
        if not each.required and not (each.form == "text" and each.blank):
            taken = each.taken(each.default)
            assert each.form == "object" or taken == each.default, each.name
