"""The whole configuration by the API: who may, what is shown and what not, what is taken and refused."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from management_routers import routers, serving

from vpnrouter import limits

PATH = "/vpnrouter/v1/config"
USERS = {
    "rob": {"password": "right"},
    "ann": {"password": "right", "role": "admin", "msg_vpns": ["blue"]},
    "eve": {"password": "right", "role": "admin"},
}
SECRETS = ("first-secret", "second-secret", "third-secret")
DOCUMENT = f"""
management: {{users: {{eve: {{password: {SECRETS[0]}}}}}}}
msg_vpns:
  blue:
    client_usernames: {{ann: {{password: {SECRETS[1]}}}, bob: {{}}}}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    """A router with secrets in its file, whose configuration can be changed."""
    (made,) = routers(tmp_path, here=DOCUMENT)
    made.edited()
    return made


def replaced(desk: Any, **usernames: Any) -> dict[str, Any]:
    """The document of a router with other client usernames."""
    document: dict[str, Any] = dict(desk.context.editor.document())
    return document | {"msg_vpns": {"blue": {"client_usernames": usernames}}}


async def test_shown(desk: Any) -> None:
    """Document, overlay and places are shown, and no secret anywhere."""
    body = {"document": replaced(desk, ann={"password": SECRETS[2]})}
    async with desk.api() as client:
        await client.put(f"{PATH}/replace", json=body)
        answer = await client.get(PATH)
    assert answer.status_code == 200
    assert not any(secret in answer.text for secret in SECRETS)
    data = answer.json()["data"]
    assert data["routerName"] == "here"
    assert data["digest"] == desk.context.editor.digest()
    assert (data["file"], data["overlayFile"]) == desk.context.editor.files()
    usernames = data["document"]["msg_vpns"]["blue"]["client_usernames"]
    assert usernames == {"ann": {"password": "***"}}
    usernames = data["overlay"]["msg_vpns"]["blue"]["client_usernames"]
    assert usernames == {"ann": {"password": "***"}, "bob": None}
    where = {tuple(one["path"]): Path(one["file"]).name for one in data["positions"]}
    assert where["router",] == "here.yaml"
    assert where["msg_vpns", "blue", "client_usernames", "ann", "password"] == "overlay.yaml"
    assert answer.headers["cache-control"] == "no-store"


async def test_places_are_bounded(desk: Any, monkeypatch: Any) -> None:
    """The places that stand deepest are left out."""
    monkeypatch.setattr(limits, "DOCUMENT_POSITIONS", 1)
    async with desk.api() as client:
        data = (await client.get(PATH)).json()["data"]
    (one,) = data["positions"]
    assert len(one["path"]) <= 1


ALL = [("GET", ""), ("POST", "/examine"), ("PUT", "/replace"), ("PUT", "/return")]


@pytest.mark.parametrize(("method", "path"), ALL)
async def test_who_may(desk: Any, here: Any, method: str, path: str) -> None:
    """Administrators of all message VPNs may; nobody else learns or changes anything, and no router without a file."""
    digest = desk.context.editor.digest()
    body = {"digest": digest} if "return" in path else {"document": replaced(desk)}
    sent = None if method == "GET" else body
    async with desk.api(USERS) as client:
        for user, status in (("rob", 403), ("ann", 403), ("eve", 200)):
            assert desk.context.editor.digest() == digest
            answer = await client.request(method, PATH + path, json=sent, auth=(user, "right"))
            assert answer.status_code == status, answer.text
            if status != 200:
                assert "msg_vpns" not in answer.text
        assert (await client.request(method, PATH + path, json=sent)).status_code == 401
    async with here.api() as client:
        answer = await client.request(method, PATH + path, json=sent)
    assert answer.status_code == 400
    assert "not started from a file" in answer.json()["meta"]["error"]["description"]


async def test_examined(desk: Any) -> None:
    """Problems and changes come as rows, and nothing has changed."""
    digest = desk.context.editor.digest()
    changed = {"msg_vpns": {"blue": {"max_connection_count": 3}}}
    async with desk.api() as client:
        document = replaced(desk) | changed
        good = (await client.post(f"{PATH}/examine", json={"document": document})).json()["data"]
        document = document | {"nothing": 1}
        wrong = (await client.post(f"{PATH}/examine", json={"document": document})).json()["data"]
    found = {tuple(one["path"]): (one["text"], one["effect"]) for one in good["changes"]}
    text, effect = found["msg_vpns", "blue", "max_connection_count"]
    assert text.startswith("msg_vpns.blue.max_connection_count: ")
    assert " -> 3" in text
    assert effect == "in-place"
    assert {one["severity"] for one in good["problems"]} == {"warning"}
    assert good["digest"] == digest
    (problem,) = [one for one in wrong["problems"] if one["severity"] == "error"]
    assert (problem["severity"], wrong["changes"]) == ("error", [])
    assert "nothing" in problem["message"]
    assert (Path(problem["file"]).name, problem["line"]) == ("overlay.yaml", 8)
    assert desk.context.editor.digest() == digest


async def test_replaced(desk: Any) -> None:
    """The document is the new one where the expected one was in force, and an earlier one can be returned to."""
    first = desk.context.editor.digest()
    body = {"document": replaced(desk, carl={}), "expected": first}
    async with desk.api(USERS, auth=("eve", "right")) as client:
        answer = (await client.put(f"{PATH}/replace", json=body)).json()["data"]
        assert answer["digest"] == desk.context.editor.digest() != first
        assert "carl" in desk.config.msg_vpns["blue"].client_usernames
        error = (await client.put(f"{PATH}/replace", json=body)).json()["meta"]["error"]
        assert error["status"] == "NOT_ALLOWED"
        assert "is another one by now" in error["description"]
        await client.put(f"{PATH}/return", json={"digest": first})
    assert desk.context.editor.digest() == first
    assert {one.name for one in desk.log.after(0, 99) if "user eve" in one.text or one.name} >= {
        "eve"
    }


async def test_what_the_editor_refuses(desk: Any, monkeypatch: Any) -> None:
    """Every problem is told, up to a number; what cannot be done as things stand too."""
    monkeypatch.setattr(limits, "DOCUMENT_PROBLEMS", 2)
    digest = desk.context.editor.digest()
    async with desk.api() as client:
        body = {"document": replaced(desk) | {"a": 1, "b": 2, "c": 3}}
        error = (await client.put(f"{PATH}/replace", json=body)).json()["meta"]["error"]
        assert error["status"] == "INVALID_PARAMETER"
        assert len(error["description"].splitlines()) == 3
        assert error["description"].endswith("\nand 1 more problems")
        error = (await client.put(f"{PATH}/return", json={"digest": "d0"})).json()["meta"]["error"]
        assert error["status"] == "NOT_ALLOWED"
        assert "d0 is none of the last" in error["description"]
    assert desk.context.editor.digest() == digest


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
        (
            b'{"document": {"a": [' + b"1," * limits.CONFIG_VALUES + b"1]}}",
            f"more than {limits.CONFIG_VALUES} values",
        ),
        (b'{"document": {"a": ' + b"1" * 5000 + b"}}", "a number of 5000 digits"),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else "",
)
async def test_bodies_that_are_wrong(desk: Any, content: bytes, said: str) -> None:
    """Each is 400 and says why; the editor is not asked."""
    digest = desk.context.editor.digest()
    async with desk.api() as client:
        for method, verb in (("PUT", "replace"), ("POST", "examine")):
            answer = await client.request(method, f"{PATH}/{verb}", content=content, headers=JSON)
            assert answer.status_code == 400
            assert said in answer.json()["meta"]["error"]["description"]
    assert desk.context.editor.digest() == digest


async def test_a_body_from_a_web_page(desk: Any) -> None:
    """What a browser sends without asking first is not taken."""
    digest = desk.context.editor.digest()
    async with desk.api() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            headers = {"content-type": kind} if kind else {}
            answer = await client.post(
                f"{PATH}/examine", content=b'{"document": {}}', headers=headers
            )
            assert answer.status_code == 400
    assert desk.context.editor.digest() == digest


def test_bodies_are_bounded(desk: Any, monkeypatch: Any) -> None:
    """In size, and in how many are read at a time."""
    digest = desk.context.editor.digest()
    with serving(desk.application()) as place, httpx.Client(trust_env=False) as client:
        url = f"{place}{PATH}/replace"
        answer = client.put(url, content=b" " * (limits.DOCUMENT_BYTES + 1), headers=JSON)
        assert answer.status_code == 400
        assert "more than 8,388,608 bytes" in answer.json()["meta"]["error"]["description"]
        monkeypatch.setattr(limits, "DOCUMENTS_READ", 0)
        assert client.put(url, json={"document": {}}).status_code == 503
    assert desk.context.editor.digest() == digest
