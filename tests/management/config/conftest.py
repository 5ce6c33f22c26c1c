"""A configuration kept in memory (kept.py), and clients of an application that changes it."""

import importlib.util
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

PLACE = Path(__file__).with_name("kept.py")

DOCUMENT: dict[str, Any] = {
    "router": {"name": "here"},
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


@pytest.fixture(scope="session")
def kept() -> ModuleType:
    """The module kept.py."""
    spec = importlib.util.spec_from_file_location("config_kept", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """The configuration above."""
    return DOCUMENT


@pytest.fixture
def editor(kept: ModuleType, tmp_path: Path) -> Any:
    """An editor of the configuration above."""
    return kept.KeptEditor(DOCUMENT, tmp_path)


@pytest.fixture
def configuring(kept: ModuleType, still: Any) -> Callable[..., Any]:
    """Opens clients of an application: `async with` it, given an editor, users and a login."""

    @asynccontextmanager
    async def run(
        editor: Any, users: Any = None, auth: tuple[str, str] | None = None
    ) -> AsyncIterator[httpx.AsyncClient]:
        app = kept.application(editor, still, users)
        transport = httpx.ASGITransport(
            app, client=("127.0.0.1", 50_000), raise_app_exceptions=False
        )
        async with httpx.AsyncClient(
            transport=transport,
            base_url="http://localhost:8080/SEMP/v2/config",
            trust_env=False,
            auth=auth,
        ) as client:
            yield client

    return run
