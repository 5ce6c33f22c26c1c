"""Each recipe of docs/transforms.md does what the page says."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from vpnrouter.config.configured_transform import transform_of
from vpnrouter.config.connector import ConnectorLink
from vpnrouter.core.message import Message
from vpnrouter.wire.mqtt.properties import Properties, decode_properties
from vpnrouter.wire.mqtt.publish_block import message_block, publish_block_with
from vpnrouter.wire.mqtt.reason import PUBLISH

PAGE: Final = Path(__file__).parents[2] / "docs" / "transforms.md"
RECIPE: Final = re.compile(
    r"^### (?P<name>.*)\n\n```yaml\n(?P<steps>(?:.|\n)*?)```\n\n```text\n(?P<shown>(?:.|\n)*?)```",
    re.MULTILINE,
)
RECIPES: Final = list(RECIPE.finditer(PAGE.read_text(encoding="utf-8")))

Said = tuple[str, str, list[tuple[str, str]]]


def said(line: str) -> Said:
    """Topic, payload and properties of a line of the page."""
    _, topic, payload, *pairs = re.split(r" {2,}", line)
    found = [tuple(pair.split("=", 1)) for pair in (pairs[0].split(" ") if pairs else [])]
    return topic, payload, [(name, text) for name, text in found]


def changed(steps: Any, before: Said) -> Said:
    """The message after the steps."""
    topic, payload, pairs = before
    block = message_block(Properties(user_properties=pairs)) if pairs else b""
    message = Message(topic.encode(), payload.encode(), block)
    link = ConnectorLink.model_validate({"source": {"address": "#"}, "transform": steps})
    transform = transform_of(link)
    assert transform is not None
    assert transform.change(message, 0) == ""
    field = publish_block_with(message.block)
    properties, _ = decode_properties(field, 0, len(field), PUBLISH)
    return message.topic.decode(), message.payload.decode(), properties.user_properties


def test_there_are_ten() -> None:
    """No recipe is left out, because it is written otherwise."""
    assert len(RECIPES) == PAGE.read_text(encoding="utf-8").count("\n### ") >= 10


@pytest.mark.parametrize("recipe", RECIPES, ids=[one["name"] for one in RECIPES])
def test_recipes(recipe: Any) -> None:
    """The message after it is that of the page."""
    before, after = recipe["shown"].splitlines()
    assert changed(yaml.safe_load(recipe["steps"])["transform"], said(before)) == said(after)
