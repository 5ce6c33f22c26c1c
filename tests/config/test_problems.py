"""Problems: their lines, their places, and errors of the models in words."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from vpnrouter.config.error_messages import to_problem
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import field_at
from vpnrouter.config.parse import parse
from vpnrouter.config.problem import Position, Problem, show_path
from vpnrouter.config.problem_list import MeshProblems, ProblemList
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.unsupported_keys import ANY, UNSUPPORTED, UnsupportedKey


def test_text() -> None:
    """A problem reads FILE:LINE:COLUMN: message; a warning says that it is one."""
    place = Position("edge.yaml", 3, 7)
    assert str(Problem(place, "error", "no")) == "edge.yaml:3:7: no"
    assert str(Problem(place, "warning", "hm")) == "edge.yaml:3:7: warning: hm"


def test_path() -> None:
    """A path reads as people write it."""
    assert show_path(("msg_vpns", "blue", "bridges", "b", "remote_msg_vpns", 0, "name")) == (
        "msg_vpns.blue.bridges.b.remote_msg_vpns[0].name"
    )
    assert show_path(()) == ""


def findings() -> ProblemList:
    """Findings over a small document from which one thing was dropped."""
    document = parse(b"a: {b: 1, c: 2}\nd: [x, y]", "f", [])
    assert document is not None
    return ProblemList(document.without([("a", "c"), ("d", 0)]), document)


def test_errors_and_warnings_stand_at_values_or_keys() -> None:
    """A finding is about a value or about its key, and says the path."""
    found = findings()
    found.error(("a", "b"), "one")
    found.key_error(("a", "b"), "two")
    found.warning(("a", "b"), "three")
    found.key_warning(("a", "b"), "four")
    assert [str(problem) for problem in found.problems] == [
        "f:1:8: a.b: one",
        "f:1:5: a.b: two",
        "f:1:8: warning: a.b: three",
        "f:1:5: warning: a.b: four",
    ]


def test_what_was_dropped_counts_as_written() -> None:
    """A dropped part is still known to be written, and its owner not to be whole."""
    found = findings()
    assert found.is_configured(("a", "c"))
    assert not found.is_configured(("a", "z"))
    assert not found.is_whole(("a",))


def test_indexes_are_those_of_the_file() -> None:
    """After an item was dropped, the next one keeps the number that it has in the file."""
    found = findings()
    found.error(("d", 0), "this")
    assert str(found.problems[0]) == "f:2:8: d[1]: this"


def test_readable(tmp_path: Path) -> None:
    """A file that cannot be read is told with the reason; none at all is fine."""
    found = findings()
    (tmp_path / "here").touch()
    found.readable(("a", "b"), None)
    found.readable(("a", "b"), str(tmp_path / "here"))
    assert found.problems == []
    found.readable(("a", "b"), str(tmp_path / "gone"))
    found.readable(("a", "b"), "a\0b")
    assert [problem.message.rpartition(": ")[2] for problem in found.problems] == [
        "No such file or directory",
        "not a path",
    ]


KIT = runpy.run_path(str(Path(__file__).with_name("mesh_kit.py")))
router, load_all = KIT["router"], KIT["load_all"]


def test_lines() -> None:
    """A finding is a line with its place; what is no error says so."""
    (loaded,) = load_all([router("a", {"v": {}})])
    found = MeshProblems()
    found.add("error", loaded, ("router", "name"), "one")
    found.add("warning", loaded, ("router", "name"), "two")
    found.add_key("note", loaded, ("msg_vpns", "v"), "three")
    lines = [str(each) for each in found.problems]
    assert lines[0].startswith("a.yaml:3:")
    assert lines[0].endswith(": router.name: one")
    assert ": warning: router.name: two" in lines[1]
    assert ": note: msg_vpns.v: three" in lines[2]
    assert found.errors() == 1


def told(text: str) -> list[str]:
    """The messages for the validation errors of a text."""
    document = parse(text.encode(), "f", [])
    assert document is not None
    try:
        RouterConfig.model_validate(document.data)
    except ValidationError as error:
        return [str(to_problem(one, document, RouterConfig)) for one in error.errors()]
    return []


def test_types_in_words_of_yaml() -> None:
    """What was given is called what the person wrote, never a Python type."""
    router = "router: {{name: {}}}"
    given = {
        "[]": "a list",
        "{}": "a mapping",
        "~": "empty",
        "1": "a number (put text in quotes)",
        "no": "false (put text in quotes)",
    }
    for written, words in given.items():
        assert told(router.format(written)) == [f"f:1:16: router.name: must be text, not {words}"]


def test_long_values_are_not_repeated() -> None:
    """A value that would fill the line is described instead."""
    (only,) = told(f"{{router: {{name: r}}, listeners: [{{protocol: {'x' * 41}, bind: 'h:1'}}]}}")
    assert only.endswith("https, not text")


def test_network_text_is_bounded() -> None:
    """A network exception has at most as many characters as the field allows."""
    group = f"{{client_connect: {{exceptions: [{'1' * 43}x]}}}}"
    (only,) = told(f"{{router: {{name: r}}, msg_vpns: {{b: {{acl_profiles: {{a: {group}}}}}}}}}")
    assert only.endswith("exceptions[0]: longer than 43 characters")


def test_unknown_key_of_a_named_object() -> None:
    """The nearest key is looked for among those of the very object."""
    (only,) = told("{router: {name: r}, msg_vpns: {b: {queues: {q: {acces_type: x}}}}}")
    assert only.endswith("unknown key acces_type in msg_vpns.b.queues.q; did you mean access_type?")


def test_unknown_key_as_long_as_a_file() -> None:
    """A key of any length is answered at once."""
    (only,) = told("{router: {name: r}, ? " + "k" * 100_000 + " : 1}")
    assert (
        "; known keys are bridging, guaranteed_msging, listeners, logging, management, msg_vpns, router, trace"
        in only
    )


BRIDGE = """
msg_vpns:
  blue:
    bridges:
      b:
        remote_authentication: {{basic: {{client_username: u}}}}
        remote_subscriptions: [a]
        remote_msg_vpns: [{{name: red, location: "{location}"{more}}}]
"""


@pytest.mark.parametrize("row", UNSUPPORTED, ids=lambda row: ".".join(map(str, row.path)))
def test_rows_name_known_keys(row: UnsupportedKey) -> None:
    """Each row of the table is about a key that a configuration can hold."""
    model: type[Model] = RouterConfig
    path = tuple("x" if step == ANY else step for step in row.path)
    assert field_at(model, path) is not None


def test_messages_say_what_happens() -> None:
    """Each message says that this version lacks it and what that means."""
    for row in UNSUPPORTED:
        assert re.search("this version.*; |by this version|this version removes", row.message)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "msg_vpns: {blue: {client_profiles: {p: {eliding: {enabled: true}}}}}",
            "2:41 msg_vpns.blue.client_profiles.p.eliding: eliding is not part of this version",
        ),
    ],
)
def test_warns(warnings_of: Callable[[str], list[str]], text: str, warning: str) -> None:
    """What this version does not do is told where it is written."""
    assert [one for one in warnings_of(text) if warning in one]


@pytest.mark.parametrize(
    "text",
    [
        "msg_vpns: {blue: {queues: }}",
        "msg_vpns: {blue: {queues: {}}}",
        "msg_vpns: {blue: }",
        BRIDGE.format(location="h:1", more=", tls_enabled: true, compressed_data_enabled: true"),
        BRIDGE.format(location="v:core", more=""),
        BRIDGE.format(location="h:1", more=", queue_binding: q, egress_flow_window_size: 9"),
        "trace: {directory: t}",
        'listeners: [{protocol: http, bind: "127.0.0.1:1"}]',
        "management: {users: {ann: {password: pw, role: admin}}}",
    ],
)
def test_does_not_warn(warnings_of: Callable[[str], list[str]], text: str) -> None:
    """Defaults and what says nothing are not warned about."""
    assert [one for one in warnings_of(text) if "this version" in one] == []


def test_each_place_is_told_once(warnings_of: Callable[[str], list[str]]) -> None:
    """Two profiles with eliding are two warnings, whatever it says."""
    eliding = "eliding: {enabled: true, delay: 5}"
    text = (
        f"msg_vpns:\n  blue:\n    client_profiles:\n      p: {{{eliding}}}\n      q: {{{eliding}}}"
    )
    assert [one.split()[0] for one in warnings_of(text) if "eliding is" in one] == ["5:11", "6:11"]
