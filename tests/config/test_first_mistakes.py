"""What a new user writes first and wrong: each message names the place and the cure."""

from pathlib import Path
from typing import Final

import pytest

from vpnrouter.config.load import read

HEAD: Final = "router: {name: edge}\n"
BLUE: Final = HEAD + "msg_vpns:\n  blue: "
QUEUE: Final = BLUE + "{queues: {q: {%s}}}\n"
LISTENER: Final = HEAD + "listeners: [{protocol: mqtt, bind: %s}]\n"
USER: Final = BLUE + "{client_usernames: {bob: {%s}}}\n"

VARIABLE: Final = "looks like a variable: write {env: NAME} or {file: PATH}"

MISTAKES: Final = {
    "item that is indented less": (
        HEAD + "listeners:\n  - protocol: mqtt\n   bind: x:1\n",
        "4:4",
        "the list that begins in line 3, column 3 begins with -, below the first one",
    ),
    "key that is indented less": (
        BLUE + "\n    queues:\n      orders: {}\n     bridges: {}\n",
        "6:6",
        "indent keys of one mapping alike, as in the one that begins in line 4, column 5",
    ),
    "item's key left of it": (
        HEAD + "listeners:\n- protocol: mqtt\n  bind: x:1\n msg_vpn: x\n",
        "5:2",
        "indent keys of one mapping alike",
    ),
    "tab": ("router:\n\tname: edge\n", "2:1", "a tab; indent with spaces"),
    "no colon": (
        BLUE + "\n    queues\n      orders: {}\n",
        "5:13",
        "the line above lacks its own colon",
    ),
    "colon in a text": (
        HEAD + "trace:\n  dir: a: b\n",
        "3:9",
        "the text with the colon needs quotes",
    ),
    "bracket": (
        "router: {name: edge\nmsg_vpns: {blue: {}}\n",
        "2:9",
        "a comma or the closing } is missing in the text in brackets that begins in line 1",
    ),
    "list in brackets": (
        HEAD + "trace: [a\nlisteners: []\n",
        "3:10",
        "the closing ] is missing",
    ),
    "quotation mark": (
        'router: {name: "edge}\n',
        "2:1",
        "is not closed in the text that begins in line 1, column 16",
    ),
    "at sign": ("router: {name: @edge}\n", "1:16", "must not begin with @ here; put it in quotes"),
    "asterisk": (
        QUEUE % "subscriptions: [*/a]",
        "3:40",
        "must not begin with * here; put it in quotes",
    ),
    "exclamation mark in brackets": (
        QUEUE % "subscriptions: [a/>, !a/b]",
        "3:44",
        "must not begin with ! here; put it in quotes",
    ),
    "exclamation mark with another": (
        QUEUE % "subscriptions: [a/>, !a!b]",
        "3:44",
        "must not begin with ! here; put it in quotes",
    ),
    "time of day for a number": (
        QUEUE % "max_ttl: 12:30",
        "3:32",
        "msg_vpns.blue.queues.q.max_ttl: is no number with a colon in it: put text in quotes",
    ),
    "time of day in a list": (
        QUEUE % "subscriptions: [a, 12:30]",
        "3:42",
        "msg_vpns.blue.queues.q.subscriptions[1]: is no number",
    ),
    "name that is a comment": (
        BLUE + "\n    queues:\n      #DEAD_MSG_QUEUE: {}\n",
        "5:7",
        'is empty, because #DEAD_MSG_QUEUE: below it is a comment; to mean a name, write "#DEAD_MSG_QUEUE":',
    ),
    "key of an entry": (
        BLUE + "{bridges: {b: {egress_flow_window_size: 9}}}\n",
        "3:24",
        "it belongs into each entry of remote_msg_vpns",
    ),
    "key of the object above": (
        QUEUE % "redelivery: {max_ttl: 9}",
        "3:36",
        "it belongs into msg_vpns.blue.queues.q: indent it like redelivery:",
    ),
    "key of the mapping above a name": (
        QUEUE % "max_topic_levels: 9",
        "3:23",
        "it belongs into msg_vpns.blue: indent it like queues:",
    ),
    "share of MQTT": (
        QUEUE % "subscriptions: [$share/g/a]",
        "3:39",
        "write #share/GROUP/FILTER, or topic_syntax: mqtt",
    ),
    "name of the router's own": (
        BLUE + "{queues: {'#foo': {}}}\n",
        "3:19",
        "gets no messages: clients cannot send to a name that begins with #",
    ),
    "name of the router outside": (
        "router:\nname: edge\n",
        "2:1",
        "it belongs into router: indent it below router:, or write router: {name: …}",
    ),
    "no space": ("router: {name:edge}\n", "1:10", "write name: with a space behind the colon"),
    "port as number": (
        LISTENER % "1883",
        "2:36",
        'HOST:PORT in quotes, such as "127.0.0.1:1883", or "0.0.0.0:1883" for all addresses',
    ),
    "port as text": (LISTENER % "'1883'", "2:36", '"127.0.0.1:1883", or "0.0.0.0:1883"'),
    "host alone": (LISTENER % "localhost", "2:36", "an address needs a port: HOST:PORT"),
    "any host": (LISTENER % "'*:1883'", "2:36", "0.0.0.0:PORT for all of IPv4"),
    "no host": (LISTENER % "':1883'", "2:36", "0.0.0.0:PORT for all of IPv4"),
    "URL": (LISTENER % "'mqtt://localhost:1883'", "2:36", "no scheme: HOST:PORT"),
    "protocol": (
        LISTENER.replace("mqtt", "tcp") % "'[::]:1'",
        "2:24",
        "must be one of mqtt, mqtts",
    ),
    "yes for a number": (
        QUEUE % "max_redelivery_count: yes",
        "3:45",
        "not true (yes, no, on and off are true and false in YAML)",
    ),
    "unit": (
        QUEUE % "max_msg_spool_usage: 200 MB",
        "3:44",
        "without its unit; configs/reference.yaml says which one max_msg_spool_usage has",
    ),
    "unit without a space": (QUEUE % "max_ttl: 10s", "3:32", "without its unit"),
    "number in quotes": (QUEUE % "max_ttl: '10'", "3:32", "a whole number: take the quotes away"),
    "switch in quotes": (BLUE + "{enabled: 'true'}\n", "3:19", "take the quotes away"),
    "list for a mapping": (
        BLUE + "{queues: [orders]}\n",
        "3:18",
        "write NAME: VALUE in lines of their own",
    ),
    "text for a list": (QUEUE % "subscriptions: a", "3:38", "begin each entry with -"),
    "mapping for a list": (
        HEAD + "listeners: {protocol: mqtt}\n",
        "2:12",
        "begin each entry with -",
    ),
    "other brokers' word": (BLUE + "{users: {ann: {}}}\n", "3:10", "write client_usernames"),
    "letter missing": (BLUE + "{queue: {}}\n", "3:10", "did you mean queues?"),
    "no password": (USER % "", "3:34", "it has no password: give it password: …"),
    "password as number": (USER % "password: 1234", "3:45", "put the value in quotes"),
    "variable of a shell": (USER % "password: $BOB_PASSWORD", "3:45", VARIABLE),
    "variable of Compose": (USER % "password: '${bob-password}'", "3:45", VARIABLE),
    "variable of Windows": (USER % "password: '%BOB%'", "3:45", VARIABLE),
    "variable as a text": (USER % "password: 'env:BOB'", "3:45", VARIABLE),
    "variable of a template": (USER % "password: '{{ bob }}'", "3:45", VARIABLE),
    "variable that is not set": (
        USER % "password: {env: NOT_SET_ANYWHERE}",
        "3:45",
        "environment variable NOT_SET_ANYWHERE is not set",
    ),
    "key twice": (HEAD + "msg_vpns:\n  a: {}\n  a: {}\n", "4:3", "key a stands twice"),
    "TLS without a certificate": (
        HEAD + "listeners: [{protocol: mqtts, bind: '[::]:1'}]\n",
        "2:13",
        "needs tls: {certificate: …, key: …}",
    ),
}
"""A configuration, line and column, and what stands in the message."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_place_and_cure(mistake: str, tmp_path: Path) -> None:
    """In one of the messages, at the place."""
    text, place, cure = MISTAKES[mistake]
    file = tmp_path / "edge.yaml"
    file.write_text(text)
    told = [str(problem).removeprefix(f"{file}:") for problem in read(file, overlay=False).problems]
    assert [one for one in told if one.startswith(f"{place}: ") and cure in one], told


@pytest.mark.parametrize(
    "password",
    ["$ecret", "p$A", "50%", "%a", "{}", "envy", "file", "${", "$1", "{env: HOME}"],
)
def test_passwords_that_look_like_none(password: str, tmp_path: Path) -> None:
    """Signs of variables within a password are no variables."""
    file = tmp_path / "edge.yaml"
    written = password if password.startswith("{env") else f"'{password}'"
    file.write_text(USER % f"password: {written}")
    assert "variable" not in " ".join(map(str, read(file, overlay=False).problems))


@pytest.mark.parametrize(
    "text",
    [
        BLUE + "\n    queues:\n      # orders: {}\n",
        BLUE + "\n    queues:\n      #orders\n",
        BLUE + "\n    queues:\n    #orders: {}\n",
        BLUE + "\n    queues:\n      #orders: {}\n      a: {}\n",
        BLUE + "{queues: {'#dead': {}, a: {dead_msg_queue: '#dead'}, '#DEAD_MSG_QUEUE': {}}}\n",
        BLUE + "{queues: {'#in': {subscriptions: [a]}}}\n",
        QUEUE % "topic_syntax: mqtt, subscriptions: [$share/g/a]",
        QUEUE % "subscriptions: ['#share/g/a', $share]",
    ],
)
def test_what_is_no_mistake(text: str, tmp_path: Path) -> None:
    """Comments that are some, names with # that the router sends to, and shares."""
    file = tmp_path / "edge.yaml"
    file.write_text(text)
    told = [one.message for one in read(file, overlay=False).problems]
    assert [one for one in told if "none, so nobody can connect" not in one] == []


@pytest.mark.parametrize(
    "text",
    [
        USER % "password: pw",
        USER % "enabled: false",
        USER % "password_required: false",
        BLUE + "{authentication: {basic: {enabled: false}}, client_usernames: {bob: {}}}\n",
        BLUE + "{authentication: {client_cert: {enabled: true}}, client_usernames: {bob: {}}}\n",
        BLUE + "{}\n",
    ],
)
def test_who_needs_no_password(text: str, tmp_path: Path) -> None:
    """One that is off or needs none, clients that show certificates, and names that nobody wrote."""
    file = tmp_path / "edge.yaml"
    file.write_text(text)
    assert "no password" not in " ".join(map(str, read(file, overlay=False).problems))
