"""The whole configuration by the API: who may, what is shown and what not, what is taken and refused."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from vpnrouter import limits
from vpnrouter.config.effects import Change
from vpnrouter.config.parse import Plain
from vpnrouter.config.problem import Position, Problem
from vpnrouter.errors import ConfigError, OperationError
from vpnrouter.management.api_context import ApiContext
from vpnrouter.management.config.editor import Edited, Examined
from vpnrouter.settings.schema import Effect

PATH = "/vpnrouter/v1/config"
USERS = {
    "rob": {"password": "right"},
    "ann": {"password": "right", "role": "admin", "msg_vpns": ["blue"]},
    "eve": {"password": "right", "role": "admin"},
}
SECRETS = ("first-secret", "second-secret", "third-secret")
DOCUMENT = {
    "router": {"name": "here"},
    "management": {"users": {"eve": {"password": SECRETS[0]}}},
    "msg_vpns": {
        "blue": {
            "client_usernames": {"ann": {"password": SECRETS[1]}, "bob": {"password": {"env": "X"}}}
        }
    },
}
OVERLAY = {"msg_vpns": {"blue": {"client_usernames": {"ann": {"password": SECRETS[2]}, "c": None}}}}


class Desk:
    """An Editor that changes a document and nothing else."""

    def __init__(self, router: Any) -> None:
        self.router = router
        self.plain: Plain = json.loads(json.dumps(DOCUMENT))
        self.asked: list[Any] = []
        self.error: Exception | None = None
        self.found = Examined((), ())

    def config(self) -> Any:
        return self.router

    def document(self) -> Plain:
        return self.plain

    def positions(self) -> Any:
        return iter([(("router",), Position("c.yaml", 1, 1)), (("a", 0), Position("o.yaml", 2, 3))])

    def files(self) -> tuple[str, str]:
        return "c.yaml", "o.yaml"

    def digest(self) -> str:
        return "d1"

    def overlay(self) -> Plain:
        return OVERLAY

    async def examine(self, document: Plain) -> Examined:
        self.asked.append(document)
        return self.found

    async def edit(self, change: Callable[[Plain], None], who: str, expected: str = "") -> Edited:
        self.asked.append((who, expected))
        if self.error is not None:
            raise self.error
        change(self.plain)
        return Edited(("one line",), "d2")

    async def return_to(self, digest: str, who: str) -> Edited:
        self.asked.append((who, digest))
        if self.error is not None:
            raise self.error
        return Edited((), digest)


class Named:
    """As much of a configuration as is asked for."""

    class router:  # noqa: N801
        """The router itself."""

        name = "here"


@pytest.fixture
def desk(still: Any, standing: Any, monkeypatch: Any) -> Desk:
    """An editor, in every application that is opened."""
    made = Desk(Named)
    real = standing.build_app

    def build(context: ApiContext, access: Any) -> Any:
        context.editor = made  # type: ignore[assignment]
        return real(context, access)

    monkeypatch.setattr(standing, "build_app", build)
    return made


async def test_shown(still: Any, opened: Any, desk: Desk) -> None:
    """Document, overlay and places, and no secret anywhere."""
    async with opened(still) as client:
        answer = await client.get(PATH)
    assert answer.status_code == 200
    assert not any(secret in answer.text for secret in SECRETS)
    data = answer.json()["data"]
    assert data["routerName"] == "here"
    assert data["digest"] == "d1"
    assert (data["file"], data["overlayFile"]) == ("c.yaml", "o.yaml")
    usernames = data["document"]["msg_vpns"]["blue"]["client_usernames"]
    assert usernames == {"ann": {"password": "***"}, "bob": {"password": {"env": "X"}}}
    usernames = data["overlay"]["msg_vpns"]["blue"]["client_usernames"]
    assert usernames == {"ann": {"password": "***"}, "c": None}
    assert data["positions"] == [
        {"path": ["router"], "file": "c.yaml", "line": 1, "column": 1},
        {"path": ["a", 0], "file": "o.yaml", "line": 2, "column": 3},
    ]
    assert answer.json()["meta"]["responseCode"] == 200
    assert answer.headers["cache-control"] == "no-store"
    assert desk.plain == DOCUMENT


async def test_places_are_bounded(still: Any, opened: Any, desk: Desk, monkeypatch: Any) -> None:
    """The ones that stand deepest are left out."""
    monkeypatch.setattr(limits, "DOCUMENT_POSITIONS", 1)
    async with opened(still) as client:
        data = (await client.get(PATH)).json()["data"]
    assert [one["path"] for one in data["positions"]] == [["router"]]


ALL: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("POST", "/examine", {"document": {}}),
    ("PUT", "/replace", {"document": {}}),
    ("PUT", "/return", {"digest": "d0"}),
]


@pytest.mark.parametrize(("method", "path", "body"), ALL)
async def test_who_may(
    still: Any, opened: Any, desk: Desk, method: str, path: str, body: Any
) -> None:
    """Administrators of all message VPNs; nobody else learns or changes anything."""
    async with opened(still, USERS) as client:
        for user, status in (("rob", 403), ("ann", 403), ("eve", 200)):
            answer = await client.request(method, PATH + path, json=body, auth=(user, "right"))
            assert answer.status_code == status, answer.text
            assert bool(desk.asked) == (status == 200 and method != "GET")
            if status != 200:
                assert "msg_vpns" not in answer.text
        assert (await client.request(method, PATH + path, json=body)).status_code == 401


@pytest.mark.parametrize(("method", "path", "body"), ALL)
async def test_a_router_without_a_file(
    still: Any, opened: Any, method: str, path: str, body: Any
) -> None:
    """It says so."""
    async with opened(still) as client:
        answer = await client.request(method, PATH + path, json=body)
    assert answer.status_code == 400
    assert "not started from a file" in answer.json()["meta"]["error"]["description"]


async def test_examined(still: Any, opened: Any, desk: Desk) -> None:
    """Problems and changes as rows."""
    path = ("msg_vpns", "blue", "max_ttl")
    desk.found = Examined(
        (Problem(Position("o.yaml", 3, 4), "warning", "hm"),),
        (Change(path, 1, 2, Effect.NEXT_LOGIN),),
    )
    async with opened(still) as client:
        answer = await client.post(f"{PATH}/examine", json={"document": {"a": [1.5, None, "x"]}})
    assert desk.asked == [{"a": [1.5, None, "x"]}]
    text = "msg_vpns.blue.max_ttl: 1 -> 2 (for logins from now on)"
    assert answer.json()["data"] == {
        "problems": [
            {"severity": "warning", "file": "o.yaml", "line": 3, "column": 4, "message": "hm"}
        ],
        "changes": [
            {"path": ["msg_vpns", "blue", "max_ttl"], "text": text, "effect": "next-login"}
        ],
        "digest": "d1",
    }


async def test_replaced(still: Any, opened: Any, desk: Desk) -> None:
    """The document is the new one, asked for by name, with what was expected."""
    async with opened(still, USERS) as client:
        client.auth = ("eve", "right")
        body = {"document": {"router": {"name": "x"}}, "expected": "d1"}
        answer = await client.put(f"{PATH}/replace", json=body)
        assert answer.json()["data"] == {"lines": ["one line"], "digest": "d2"}
        assert desk.plain == {"router": {"name": "x"}}
        answer = await client.put(f"{PATH}/return", json={"digest": "d0"})
        assert answer.json()["data"] == {"lines": [], "digest": "d0"}
    assert desk.asked == [("eve", "d1"), ("eve", "d0")]


@pytest.mark.parametrize(
    ("verb", "body"), [("replace", {"document": {}}), ("return", {"digest": "d0"})]
)
async def test_what_the_editor_refuses(
    still: Any, opened: Any, desk: Desk, verb: str, body: Any, monkeypatch: Any
) -> None:
    """Every problem is told, up to a number; what cannot be done as things stand too."""
    monkeypatch.setattr(limits, "DOCUMENT_PROBLEMS", 2)
    async with opened(still) as client:
        desk.error = ConfigError(["c.yaml:1:1: one", "c.yaml:2:1: two", "c.yaml:3:1: three"])
        error = (await client.put(f"{PATH}/{verb}", json=body)).json()["meta"]["error"]
        assert error["status"] == "INVALID_PARAMETER"
        assert error["description"] == "c.yaml:1:1: one\nc.yaml:2:1: two\nand 1 more problems"
        desk.error = OperationError("not now")
        error = (await client.put(f"{PATH}/{verb}", json=body)).json()["meta"]["error"]
        assert error["status"] == "NOT_ALLOWED"
        assert error["description"] == "not now"


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "no JSON object"),
        (b"{}", "document is missing"),
        (b'{"document": []}', "document: of the wrong kind"),
        (b'{"document": {}, "more": 1}', "no attribute more"),
        (b'{"document": {"a": NaN}}', "NaN is no JSON"),
        (b'{"document": {"a": 1, "a": 2}}', "a key stands twice"),
        (b'{"document": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "nested deeper than 32 levels"),
        (b'{"document": ' + b"[" * 5000, "nested deeper than 32 levels"),
        (b'{"document": {"a": [' + b"1," * 1_000_000 + b"1]}}", "more than 1000000 values"),
        (b'{"document": {"a": ' + b"1" * 5000 + b"}}", "a number of 5000 digits"),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else "",
)
async def test_bodies_that_are_wrong(
    still: Any, opened: Any, desk: Desk, content: bytes, said: str
) -> None:
    """Each is 400 and says why; the editor is not asked."""
    async with opened(still) as client:
        for method, verb in (("PUT", "replace"), ("POST", "examine")):
            answer = await client.request(method, f"{PATH}/{verb}", content=content, headers=JSON)
            assert answer.status_code == 400
            assert said in answer.json()["meta"]["error"]["description"]
    assert desk.asked == []


async def test_a_body_from_a_web_page(still: Any, opened: Any, desk: Desk) -> None:
    """What a browser sends without asking first is not taken."""
    async with opened(still) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            headers = {"content-type": kind} if kind else {}
            answer = await client.post(
                f"{PATH}/examine", content=b'{"document": {}}', headers=headers
            )
            assert answer.status_code == 400
    assert desk.asked == []


def test_bodies_are_bounded(standing: Any, still: Any, desk: Desk, monkeypatch: Any) -> None:
    """In size, and in how many are read at a time."""
    with standing.serving(still) as address, httpx.Client(trust_env=False) as client:
        url = f"http://{address}{PATH}/replace"
        answer = client.put(url, content=b" " * (limits.DOCUMENT_BYTES + 1), headers=JSON)
        assert answer.status_code == 400
        assert "more than 8,388,608 bytes" in answer.json()["meta"]["error"]["description"]
        monkeypatch.setattr(limits, "DOCUMENTS_READ", 0)
        assert client.put(url, json={"document": {}}).status_code == 503
    assert desk.asked == []
