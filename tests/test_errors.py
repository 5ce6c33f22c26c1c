"""The tree of exceptions."""

import inspect
import re

from vpnrouter import errors


def test_drawing_shows_the_classes() -> None:
    """The tree at the top of the module names every class, in order, and no other."""
    drawn = re.findall(r"^ +(?:[├└]── )?(\w+)(?: {2,}|$)", errors.__doc__ or "", re.MULTILINE)
    defined = [
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    ]
    assert drawn == defined


def test_all_have_one_root() -> None:
    """Whoever catches VpnrouterError catches everything raised on purpose."""
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    own = [value for value in classes if issubclass(value, Exception)]
    assert all(issubclass(value, errors.VpnrouterError) for value in own)


def test_config_error_keeps_every_problem() -> None:
    """The problems stay apart for machines, and are one text for people."""
    error = errors.ConfigError(["a.yaml:1:1: one", "a.yaml:2:1: two"])
    assert error.problems == ("a.yaml:1:1: one", "a.yaml:2:1: two")
    assert str(error) == "a.yaml:1:1: one\na.yaml:2:1: two"


def test_fields_for_machines() -> None:
    """Reason, reason code and clause can be read without parsing the text."""
    assert errors.ProtocolError(0x81, "bad").reason_code == 0x81
    assert errors.TopicError("bad", "TOPIC-7").clause == "TOPIC-7"
    refused = errors.Refused("403 Publish ACL Denied")
    assert (refused.reason, refused.reason_code) == ("403 Publish ACL Denied", 0x87)
