import pytest

from vpnrouter.config.msg_vpn import GROUPS, allow_by_default
from vpnrouter.config.settings_models import AclProfile


def actions(profile: AclProfile) -> list[str]:
    """The default action of each group."""
    return [getattr(profile, group).default_action for group in GROUPS]


def test_groups_are_all_of_the_profile() -> None:
    """Every part of a profile has a default action."""
    assert set(GROUPS) == set(AclProfile.model_fields)


def test_a_written_profile_starts_at_disallow() -> None:
    """As in the field; share names start at allow, as there."""
    assert actions(AclProfile()) == ["disallow", "disallow", "disallow", "allow"]


@pytest.mark.parametrize("written", [None, {}, {"publish_topic": None}, {"publish_topic": {}}])
def test_the_profile_default_starts_at_allow(written: object) -> None:
    """What is not written for the built-in profile allows."""
    assert actions(AclProfile.model_validate(allow_by_default(written))) == ["allow"] * 4


def test_the_profile_default_can_be_closed() -> None:
    """What is written for the built-in profile holds."""
    written = {"publish_topic": {"default_action": "disallow", "exceptions": ["a"]}}
    profile = AclProfile.model_validate(allow_by_default(written))
    assert actions(profile) == ["allow", "disallow", "allow", "allow"]
    assert profile.publish_topic.exceptions == ("a",)


@pytest.mark.parametrize("written", ["x", 3, {"publish_topic": 3}])
def test_wrong_types_are_left_for_validation(written: object) -> None:
    """What is no mapping comes through as it is, so that its error is told at its place."""
    opened = allow_by_default(written)
    assert opened == written if not isinstance(written, dict) else opened["publish_topic"] == 3  # type: ignore[index]
