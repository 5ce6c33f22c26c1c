"""AsyncAPI documents of message VPNs: valid, exact for any names, and honest about what they leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.report.asyncapi.channels import Channel, Flow, Party, Role, VpnChannels
from vpnrouter.report.asyncapi.document import (
    Observed,
    address_of,
    channel_ids,
    document_of,
    yaml_of,
)
from vpnrouter.report.asyncapi.write import file_names, write_documents
from vpnrouter.report.topic_templates import fold
from vpnrouter.text import printable_lines

SECOND: Final = 1_000_000_000
OBSERVED: Final = Observed(span=(0, 100 * SECOND), sampling={"edge": 1.0})


def flow(*parties: Party, estimated: float | None = None, more: int = 0) -> Flow:
    """A flow of payloads of 10 bytes; `more` parties have one message each."""
    messages = sum(party.messages for party in parties) + more
    return Flow(
        messages=messages,
        estimated=estimated,
        size_bytes=10 * messages,
        parties=parties,
        all_parties=len(parties) + more,
    )


def channels(topics: Mapping[str, int], flows: Mapping[Role, Flow]) -> tuple[Channel, ...]:
    """The channels of topics, all with the same flows."""
    return tuple(Channel(template=one, flows=flows) for one in fold(topics).templates)


def vpn_of(
    topics: Sequence[str], name: str = "client", router: str = "edge", vpn: str = "blue"
) -> VpnChannels:
    """A message VPN where one client sends on topics, and everybody receives, all of the same name."""
    flows = {
        Role.CLIENT_IN: flow(Party(name, "", "", 5)),
        Role.BRIDGE_IN: flow(Party(name, router, vpn, 5)),
        Role.CONNECTOR_IN: flow(Party(name, "mqtt://broker:1883", "", 5)),
        Role.CLIENT_OUT: flow(Party(name, "", "", 5), more=3),
        Role.QUEUE_OUT: flow(Party(name, "", "", 5)),
        Role.BRIDGE_OUT: flow(Party(name, router, vpn, 5)),
        Role.CONNECTOR_OUT: flow(Party(name, "mqtt://broker:1883", "", 5)),
        Role.UNWANTED: flow(Party("", "", "", 2)),
    }
    return VpnChannels(
        router=router,
        vpn=vpn,
        traced=True,
        channels=channels(dict.fromkeys(topics, 5), flows),
        topics=len(topics),
        messages=5 * len(topics),
    )


def test_who_sends_and_who_receives() -> None:
    """Applications send and receive; the channel names everybody, of many the busiest."""
    document = document_of(vpn_of(["a/b"]), OBSERVED)
    channel = document["channels"]["topic.a.b"]
    assert channel["address"] == "a/b"
    assert channel["messages"]["message"]["x-vpnrouter-payload-bytes-mean"] == 10.0
    assert channel["x-vpnrouter-unwanted"] == {"messages-traced": 2, "per-second": 0.02}
    senders, receivers = channel["x-vpnrouter-senders"], channel["x-vpnrouter-receivers"]
    assert list(senders) == ["clients", "bridges", "connectors"]
    assert list(receivers) == ["clients", "queues", "bridges", "connectors"]
    figures = {"messages-traced": 5, "per-second": 0.05}
    one = {"name": "client", "messages-traced": 5}
    assert senders["clients"] == {**figures, "names": [one]}
    assert senders["bridges"]["names"] == [{**one, "router": "edge", "vpn": "blue"}]
    assert senders["connectors"]["names"] == [{**one, "provider": "mqtt://broker:1883"}]
    assert receivers["clients"]["more"] == 3
    sending, receiving = document["operations"].values()
    assert (sending["action"], receiving["action"]) == ("send", "receive")
    assert sending["channel"] == {"$ref": "#/channels/topic.a.b"}
    assert sending["x-vpnrouter-messages"] == figures
    assert receiving["x-vpnrouter-messages"] == {"messages-traced": 13, "per-second": 0.13}
    assert sending["description"] == (
        "Sent by client client; bridge client (edge/blue); connector client (mqtt://broker:1883)."
    )
    assert "clients client, 3 more; queue client;" in receiving["description"]


def test_bridges_alone_are_no_application() -> None:
    """What only crosses is on a channel, and no operation."""
    flows = {
        Role.BRIDGE_IN: flow(Party("in", "core", "red", 1)),
        Role.BRIDGE_OUT: flow(Party("out", "west", "v", 1)),
    }
    vpn = VpnChannels(router="edge", vpn="blue", traced=True, channels=channels({"a": 1}, flows))
    document = document_of(vpn, OBSERVED)
    assert list(document["channels"]) == ["topic.a"]
    assert document["operations"] == {}


def test_templates_have_parameters() -> None:
    """A level that varies is described with examples; one that an address cannot hold has one value."""
    topics = {f"order/{number}/{{x}}/#1?": 1 for number in range(20)}
    vpn = VpnChannels(router="edge", vpn="blue", traced=True, channels=channels(topics, {}))
    (channel,) = document_of(vpn, OBSERVED)["channels"].values()
    assert channel["address"] == "order/{level2}/{level3}/{level4}"
    assert channel["description"] == "20 topics seen."
    assert channel["parameters"]["level2"] == {
        "description": "20 values seen: numbers.",
        "examples": ["0", "1", "10"],
        "x-vpnrouter-values": 20,
    }
    assert channel["parameters"]["level3"]["enum"] == ["{x}"]
    assert channel["parameters"]["level4"]["enum"] == ["#1?"]


def test_estimates_and_sampling() -> None:
    """A figure is an estimate only where all of it is one; the share of traced messages is told."""
    flows = {
        Role.CLIENT_OUT: flow(Party("a", "", "", 5), estimated=50.0),
        Role.QUEUE_OUT: flow(Party("q", "", "", 5)),
    }
    vpn = VpnChannels(router="edge", vpn="blue", traced=True, channels=channels({"a": 1}, flows))
    observed = Observed(span=(0, 10 * SECOND), sampling={"edge": 0.1, "core": 0.5})
    document = document_of(vpn, observed)
    receivers = document["channels"]["topic.a"]["x-vpnrouter-receivers"]
    assert receivers["clients"]["messages-estimated"] == 50
    assert receivers["clients"]["per-second"] == 5.0
    assert "messages-estimated" not in receivers["queues"]
    (operation,) = document["operations"].values()
    assert operation["x-vpnrouter-messages"] == {"messages-traced": 10, "per-second": 1.0}
    info = document["info"]
    assert info["x-vpnrouter-observed"]["sampling"] == {"here": 0.1, "least": 0.1, "most": 0.5}
    assert "A share of 0.1 to 0.5, at this router 0.1 of the messages" in info["description"]
    assert info["version"] == "1970-01-01 00:00:10 UTC"
    unknown = document_of(vpn, Observed(span=(5, 5), sampling={}))
    assert "is not known" in unknown["info"]["description"]
    receivers = unknown["channels"]["topic.a"]["x-vpnrouter-receivers"]
    assert "per-second" not in receivers["clients"]


def test_what_is_left_out_is_told() -> None:
    """Topics and channels beyond bounds, and a message VPN that no router traced."""
    vpn = VpnChannels(
        router="edge",
        vpn="blue",
        traced=True,
        channels=channels({"a": 7}, {}),
        topics=1_000,
        messages=1_006,
        long_topics=1,
        channels_left_out=9,
        messages_left_out=999,
    )
    told = document_of(vpn, OBSERVED)["info"]["description"]
    assert "Left out: 9 channels of fewer messages." in told
    assert "made from 1 of 1,000 topics, the busiest; 999 messages of 1,006 are on none" in told
    assert "1 topic is too long" in told
    untraced = document_of(VpnChannels(router="x", vpn="y", traced=False), OBSERVED)
    assert "wrote no traces" in untraced["info"]["description"]
    assert untraced["channels"] == untraced["operations"] == {}
    whole = document_of(vpn_of(["a"]), OBSERVED)["info"]["description"]
    assert "eft out" not in whole
    assert "are made from" not in whole


# fmt: off
HOSTILE: Final = {
    "YAML specials": [": ", "- a", "? b", "&a", "*a", "!!python/object:os.system", "|", ">", "%TAG",
        "@", "`", "'", '"', "#c"],
    "YAML types": ["null", "~", "true", "no", "1", "1.0", "0x1f", ".inf", "2013-06-12", "<<", "=", "1:30", "---",
        "...", "", "1e3", "0o17", "+12", "-", "1_000"],
    "control characters": ["\x01", "a\nb", "\r\n", "\t", "\x1b[2J", "\x7f", "\x85", "\x9b", "\x00", " lead", "trail "],
    "unicode": ["é", "e\u0301", "\u2028", "\u2029", "\ufeff", "\u202egnp", "\ufffd", "\ufffe", "\U0001f600",
        "٣", "\u200b"],
    "templates": ["{", "}", "{}", "{level1}", "level1", "level2", "{a}{b}", "?x=1", "#P2P", "$SYS", "$ref",
        "%7B", "~1"],
    "paths": ["..", ".", ".hidden", "a\\b", "C:", "con", "%2F", "\u2215"],
    "keys of JavaScript": ["__proto__", "constructor", "toString", "hasOwnProperty", "x-a", "$defs"],
    "long": ["x" * 900, "é" * 900, "{" * 900],
}
# fmt: on
"""Levels of topics, and names."""


def texts_in(value: Any) -> set[str]:
    """All texts that are values in a document."""
    match value:
        case str():
            return {value}
        case dict():
            return set().union(*map(texts_in, value.values()))
        case list():
            return set().union(*map(texts_in, value))
        case _:
            return set()


def topics_with(name: str) -> list[str]:
    """Topics that have a level at all places."""
    return [one for one in (name, f"a/{name}/b", f"{name}/{name}", f"/{name}/") if one]


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_round_trip(kind: str) -> None:
    """Documents are what was meant, in printing characters alone, and each topic has a channel of its own."""
    names = HOSTILE[kind]
    every = [topic for name in names for topic in topics_with(name)]
    for name, topics in (*((name, topics_with(name)) for name in names), ("all", every)):
        document = document_of(vpn_of(topics, name, router=name, vpn=name), OBSERVED)
        text = yaml_of(document)
        assert yaml.safe_load(text) == document
        assert printable_lines(text) == text
        assert len(document["channels"]) == len(set(topics))
        assert {name} <= texts_in(document) or not name
        for one in document["channels"].values():
            assert all(f"{{{key}}}" in one["address"] for key in one.get("parameters", {}))
        for key in (*document["channels"], *document["operations"]):
            assert key.isascii()
            assert len(key) < 130


@pytest.mark.long
@pytest.mark.peers
def test_the_parser_takes_hostile_names(tmp_path: Path, judged: Callable[[Path], Any]) -> None:
    """AsyncAPI's own parser finds nothing wrong, and reads the channels that were meant."""
    vpns = []
    for kind, names in HOSTILE.items():
        vpns += [vpn_of([name or "a"], name, router=kind, vpn=name) for name in names]
        folding = [f"{name}/{number}/{name}" for name in names for number in range(20)]
        every = [topic for name in names for topic in topics_with(name)]
        vpns.append(vpn_of([*every, *folding], router=kind, vpn=f"all of {kind}"))
    write_documents(writer(tmp_path), vpns, OBSERVED)
    expected = {vpn.vpn: vpn for vpn in vpns}
    found = judged(tmp_path)
    assert len(found) == len(vpns)
    for name, one in found.items():
        wrong = [told for told in one["objections"] if told[0] in {"error", "warning"}]
        assert not wrong, (name, wrong)
        document = yaml.safe_load((tmp_path / name).read_text(encoding="utf-8"))
        vpn = expected[document["info"]["x-vpnrouter-observed"]["vpn"]]
        assert one["vpn"] == vpn.vpn
        assert [*one["channels"].values()] == [
            address_of(of.template.levels) for of in vpn.channels
        ]
        assert one["operations"].keys() == document["operations"].keys()


def writer(folder: Path) -> Callable[[str, str], None]:
    """Writes files below a directory, and refuses what leads out of it."""

    def write(name: str, text: str) -> None:
        path = folder / name
        assert path.resolve().parent.parent == folder.resolve()
        path.parent.mkdir(exist_ok=True)
        assert not path.exists()
        path.write_text(text, encoding="utf-8")

    return write


def test_a_thousand_message_vpns(tmp_path: Path) -> None:
    """Each has a file of its own, where names would leave the directory, are hidden, or differ in case alone."""
    names = [name for some in HOSTILE.values() for name in some]
    vpns = [vpn_of(["a"], router=router, vpn=vpn) for router in names[:12] for vpn in names]
    vpns += [
        vpn_of(["a"], router="edge", vpn=f"{one}{number}") for number in range(60) for one in "vV"
    ]
    assert len(vpns) > 1_000
    write_documents(writer(tmp_path), vpns, OBSERVED)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == len(vpns)
    assert len({str(path.relative_to(tmp_path)).lower() for path in files}) == len(vpns)
    assert all(path.suffix == ".yaml" and not path.name.startswith(".") for path in files)


_NAMES: Final = st.text(
    st.one_of(st.sampled_from("aA./%~ "), st.characters(exclude_categories=["Cs"])), max_size=300
)


@given(st.sets(_NAMES, max_size=20))
def test_names_of_files(names: set[str]) -> None:
    """They are plain, short, no one's parent, and no two are alike."""
    found = file_names(names)
    assert found.keys() == names
    assert len({one.lower() for one in found.values()}) == len(names)
    for one in found.values():
        assert one.isascii()
        assert "/" not in one
        assert one.isprintable()
        assert not one.startswith(".")
        assert 0 < len(one) + len(".yaml") < 255
    assert file_names(["blue", "Müll"]) == {"blue": "blue", "Müll": "M%C3%BCll"}


@given(st.sets(st.lists(_NAMES, min_size=1, max_size=3).map("/".join).filter(bool), max_size=30))
def test_keys_and_yaml_of_any_topics(topics: set[str]) -> None:
    """Each topic is a channel with a key of its own, the same in any company, and YAML gives it back."""
    vpn = vpn_of(sorted(topics))
    ids = channel_ids(vpn.channels)
    assert len(set(ids)) == len(vpn.channels)
    for one, key in zip(vpn.channels, ids, strict=True):
        (alone,) = channel_ids([one])
        assert key.startswith(alone)
    document = document_of(vpn, OBSERVED)
    assert yaml.safe_load(yaml_of(document)) == document
