import pytest
from pydantic import Field, ValidationError

from vpnrouter.config.model import Many, Model, Named


class Inner(Model):
    """A model inside."""

    number: int = 3


class Outer(Model):
    """A model with one of each container."""

    items: Many[Inner] = ()
    by_name: Named[str, Inner] = Field(default_factory=dict)
    inner: Inner = Inner()


def test_models_do_not_change() -> None:
    """A loaded configuration cannot be changed by whoever holds it."""
    with pytest.raises(ValidationError, match="frozen"):
        Outer().inner = Inner(number=4)  # type: ignore[misc]


def test_nothing_is_coerced() -> None:
    """Text is not a number, however much it looks like one."""
    with pytest.raises(ValidationError, match="valid integer"):
        Inner.model_validate({"number": "4"})


def test_unknown_keys_are_refused() -> None:
    """A key that no model knows does not pass silently."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        Inner.model_validate({"numbre": 4})


def test_a_key_without_a_value_is_empty() -> None:
    """`items:`, `by_name:` and `inner:` with nothing behind them are empty, not wrong."""
    nothing = {"items": None, "by_name": None, "inner": None}
    assert Outer.model_validate(nothing) == Outer()
    assert Outer.model_validate({"by_name": {"a": None}}).by_name == {"a": Inner()}


def test_lists_become_tuples_and_items_stay_strict() -> None:
    """A list of the document is a tuple in the model; its items are not coerced either."""
    assert Outer.model_validate({"items": [{"number": 5}]}).items == (Inner(number=5),)
    with pytest.raises(ValidationError, match="valid integer"):
        Outer.model_validate({"items": [{"number": 5.5}]})


def test_errors_do_not_show_input() -> None:
    """The text of a validation error never holds what was given: it may be a secret."""
    with pytest.raises(ValidationError) as error:
        Inner.model_validate({"number": "hunter2"})
    assert "hunter2" not in str(error.value)
