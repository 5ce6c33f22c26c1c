"""What README and the pages in docs say is true of what the code has: its commands, listeners, keys and extras."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from vpnrouter.cli._show_rows import What
from vpnrouter.cli.app import COMMANDS
from vpnrouter.config.effects import TABLE
from vpnrouter.config.settings_models import Listener
from vpnrouter.config.unsupported_keys import UNSUPPORTED
from vpnrouter.report.page.tables import KINDS

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = (README, *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md")
EXTRAS = frozenset(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
) - {"test"}
PROTOCOLS: tuple[str, ...] = get_args(Listener.model_fields["protocol"].annotation)
SPOKEN = {"mqtt": "MQTT", "amqp": "AMQP", "ws": "WebSocket", "http": "HTTP", "https": "HTTPS"}
"""Protocols of listeners by the words that pages use for them."""

KEYS = {path[-1] for path in TABLE if path[-1] != "*"} - {row.path[-1] for row in UNSUPPORTED}


def sentences(page: Path) -> Iterator[str]:
    """The sentences of a page, and the cells of its tables, without what stands in blocks of code."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for part in re.split(r"\n\s*\n|\n(?=[-*|] ?)|(?<=[.;:]) |\|", text):
        yield " ".join(part.split())


MISSING = re.compile(
    r"\b(?:[Tt]here (?:is|are) no|(?:router|version|project|vpnrouter) (?:has|have|knows|speaks|offers|supports) no"
    r"|(?:does|do|is|are|can) ?not (?:yet )?(?:support|speak|offer|implement)\w*|not yet|no support for)\b"
    r"(?P<what>[^.;:|]*)"
)
ALL_SPEAK = re.compile(
    r"\b(?:all|every|only|each) (?:\w+ ){0,4}(?:speaks?|MQTT clients only)\b(?P<what>[^.;:|]*)"
)

TRUE = {
    "QoS 2, no RETAIN, no session": "pub and sub by AMQP have none",
    "this protocol": "the peer of a link",
}
"""What is said to be missing and is, by a part of the sentence: something has the name of another thing."""


def denied(sentence: str) -> Iterator[str]:
    """What a sentence says is not there, though the code has it."""
    for found in (*MISSING.finditer(sentence), *ALL_SPEAK.finditer(sentence)):
        what = found["what"]
        if re.search(
            r"\b(?:[Ii]f|[Ww]here|[Ww]hen|[Uu]ntil|[Uu]nless) [^,]*$",
            sentence[: found.start()] + " ",
        ):
            continue
        if any(part in sentence for part in TRUE):
            continue
        # The words behind a comma that begins another clause are of that.
        near = re.split(r", (?:so|but|because|which|and [a-z]+ )", what)[0]
        yield from (word for word in SPOKEN.values() if re.search(rf"\b{word}\b", near))
        named = re.findall(r"`(?:vpnrouter )?([\w-]+)", near)
        yield from (
            one
            for one in named
            if one in COMMANDS or one in KEYS or one in EXTRAS or one in set(What)
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_denied_that_is_there(page: Path) -> None:
    """No listener, command, object of `show`, key or extra is said to be missing."""
    assert [(one, what) for one in sentences(page) for what in denied(one)] == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("There is no AMQP, JMS, REST delivery point or replication.", ["AMQP"]),
        ("Both are on by default, because all clients of this router speak MQTT", ["MQTT"]),
        ("The router does not support `max_ttl` yet.", ["max_ttl"]),
        ("There is no `show connectors`, so look at the log.", ["show"]),
        ("This version has no `report`", ["report"]),
        ("There is no REST delivery point, because clients speak MQTT.", []),
        ("If there is no `queue`, it is discarded.", []),
    ],
)
def test_what_is_denied_is_found(text: str, what: list[str]) -> None:
    """Sentences that once stood there, and such as they."""
    assert [found for one in re.split(r"(?<=[.;:]) ", text) for found in denied(one)] == what


def table_of(page: str, heading: str) -> str:
    """The table of a page whose head begins so."""
    text = (ROOT / page).read_text(encoding="utf-8")
    begin = text.index(heading)
    return text[begin : text.index("\n\n", begin)]


def test_every_command_is_in_its_table() -> None:
    """And no other one; README names all of them too."""
    table = table_of("docs/commands.md", "| command | purpose | more |")
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    named = [word.split()[0] for cell in cells for word in re.findall(r"`([^`]+)`", cell)]
    assert set(COMMANDS) <= set(named)
    first = {re.findall(r"`([\w-]+)", cell)[0] for cell in cells}
    assert first <= set(COMMANDS)
    readme = README.read_text(encoding="utf-8")
    assert [
        name for name in COMMANDS if not re.search(rf"(?<![\w/-]){name}(?![\w/-])", readme)
    ] == []


@pytest.mark.parametrize("page", ["README.md", "docs/commands.md"])
def test_show_has_these_objects(page: str) -> None:
    """The list of what `show` shows is that of the command."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\|", "|")
    (listed,) = re.findall(r"`(?:vpnrouter )?show (\w+(?:\|\w+)+)", text)
    assert listed.split("|") == [str(what.value) for what in What]


def test_every_page_is_listed() -> None:
    """docs/README.md links each page once at least, and generated ones too."""
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = {page.name for page in PAGES if page.parent.name == "docs"} - {"README.md"}
    assert {page for page in pages if f"]({page}" not in index} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """To a file, and to a heading of it."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are on the web."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one)) for one in headings
    )
    return {one.lower().replace(" ", "-") for one in plain}


def test_listeners_and_extras_are_told() -> None:
    """Each protocol in the page on configuration, each extra in README."""
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert [one for one in PROTOCOLS if f"`{one}`" not in page] == []
    readme = README.read_text(encoding="utf-8")
    assert [one for one in EXTRAS if f"`{one}`" not in readme and f"[{one}]" not in readme] == []


def test_every_kind_of_finding_has_a_row() -> None:
    """In one of the report's pages, with its severity."""
    rows = "\n".join(
        page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("report-*.md")
    )
    assert [
        kind for kind in KINDS if not re.search(rf"^\| `{kind}`[^|]*\|", rows, re.MULTILINE)
    ] == []
    overview = (ROOT / "docs/report.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"`{kind}`" not in overview] == []
