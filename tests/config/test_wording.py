from pydantic import ValidationError

from vpnrouter.config.error_messages import to_problem
from vpnrouter.config.parse import parse
from vpnrouter.config.router import RouterConfig


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
