"""A router whose configuration is changed by its API."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from management_routers import routers

DOCUMENT: dict[str, Any] = {
    "msg_vpns": {
        "blue": {
            "client_profiles": {"bridging": {"allow_bridge_connections_enabled": True}},
            "client_usernames": {"alice": {"password": "secret-of-alice"}},
            "queues": {
                "orders": {"subscriptions": ["orders/>", "more/*"], "max_ttl": 5},
                "a/b,c": None,
            },
            "bridges": {
                "from-red": {
                    "remote_authentication": {
                        "basic": {"client_username": "b", "password": "secret-of-b"}
                    },
                    "remote_msg_vpns": [{"name": "red", "location": "127.0.0.1:55556"}],
                    "remote_subscriptions": ["weather/>", {"topic": "news/>", "selector": "a = 1"}],
                    "topic_mapping": [{"add_prefix": "red/", "direction": "in"}],
                }
            },
        },
        "green": None,
    },
}


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    """A router of the configuration above, which can be changed."""
    (made,) = routers(tmp_path, here=yaml.safe_dump(DOCUMENT))
    made.edited()
    return made


@pytest.fixture
def editor(desk: Any) -> Any:
    """The editor of its configuration."""
    return desk.context.editor


@pytest.fixture
def configuring(desk: Any) -> Callable[..., httpx.AsyncClient]:
    """Opens clients of the API: `async with` it, given the editor or None, users and a login."""

    def run(editor: Any, users: Any = None, auth: Any = None) -> httpx.AsyncClient:
        desk.context.editor = editor
        client: httpx.AsyncClient = desk.api(
            users, base_url="http://localhost:8080/SEMP/v2/config", auth=auth
        )
        return client

    return run
