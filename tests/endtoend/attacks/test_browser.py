"""A web page in the browser of somebody who may: it reads nothing of this API, and changes nothing."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})

SIMPLE = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "")
"""What a page may send anywhere without the browser asking first (Fetch, CORS-safelisted)."""

OPENED = """
listeners:
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue: {authentication: {basic: {enabled: false}}, queues: {q: {}}}
"""


@pytest.fixture(scope="module")
def browser(
    router_process: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A browser on the machine of a router without users: whoever is there may do everything."""
    path = tmp_path_factory.mktemp("opened") / "edge.yaml"
    path.write_text(f"router: {{name: edge, data_dir: data-edge}}\n{OPENED}", encoding="utf-8")
    router = router_process(path)
    url = f"http://127.0.0.1:{router.port('http')}"
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        yield client
    router.kill()


def operations(client: httpx.Client) -> list[tuple[str, str]]:
    """All methods and paths, with names of what there is."""
    described = client.get("/SEMP/v2/openapi.json").json()["paths"]
    found = []
    for path, methods in described.items():
        named = path.replace("{msgVpnName}", "blue").replace("{queueName}", "q")
        found += [(method.upper(), named.replace("{", "").replace("}", "")) for method in methods]
    return found


def test_nothing_is_changed_by_a_page(browser: httpx.Client) -> None:
    """No form makes a change, and a browser that asks first for another origin is given no leave."""
    before = browser.get("/vpnrouter/v1/config").json()["data"]
    origin = {"origin": "http://evil.example", "referer": "http://evil.example/"}
    body = b'{"msgVpnName": "evil", "queueName": "evil", "document": {}}'
    seen = 0
    for method, path in operations(browser):
        if method not in CHANGES:
            continue
        seen += 1
        asking = {
            "access-control-request-method": method,
            "access-control-request-headers": "content-type",
            "access-control-request-private-network": "true",
        }
        answers = [browser.options(path, headers=origin | asking)]
        assert not answers[0].is_success, path
        for kind in SIMPLE:
            headers = origin | ({"content-type": kind} if kind else {})
            answers.append(browser.post(path, content=body, headers=headers))
            assert not answers[-1].is_success, path
        for answer in answers:
            found = {name for name in answer.headers if name.startswith("access-control")}
            assert found == set()
    assert seen > 50
    assert browser.get("/vpnrouter/v1/config").json()["data"] == before


def test_nothing_is_told_to_a_page(browser: httpx.Client) -> None:
    """No answer allows another origin to read it, and none can be run as a script or shown as a page."""
    for method, path in operations(browser):
        if method == "GET":
            answer = browser.get(path, headers={"origin": "http://evil.example"})
            assert "access-control-allow-origin" not in answer.headers, path
            kind = answer.headers["content-type"]
            assert "html" not in kind
            assert "script" not in kind
            assert answer.headers["x-content-type-options"] == "nosniff", path
            assert browser.get(f"{path}?callback=run").text.lstrip()[:4] != "run("


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example#localhost",
        "localhost@evil.example",
        "evil.example/localhost",
        "192.0.2.1",
        "0.0.0.0",
        "[::2]",
        "[::1",
        "2130706433",
        "0x7f.1",
        "localhost\tevil.example",
        "localhost,evil.example",
    ],
)
def test_a_name_that_leads_here(browser: httpx.Client, host: str) -> None:
    """DNS may say that a page's own name is 127.0.0.1: such a page is not of this machine."""
    for path in ("/vpnrouter/v1/config", "/metrics", "/SEMP/v2/config/msgVpns"):
        for more in ({}, {"x-forwarded-host": "localhost", "forwarded": "host=localhost"}):
            answer = browser.get(path, headers={"host": host} | more)
            assert answer.status_code in {400, 403}, answer.text
            assert "data" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:80", "[::1]:80"])
def test_this_machine(browser: httpx.Client, host: str) -> None:
    """By its own names it is served."""
    answer = browser.get("/vpnrouter/v1/config", headers={"host": host})
    assert answer.status_code == 200
