from pathlib import Path

import pytest
import yaml

from vpnrouter.config.load import read
from vpnrouter.config.model import Model
from vpnrouter.config.model_schema import kind_of
from vpnrouter.config.reference import field_docs, reference
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.settings_models import Queue

FILE = Path(__file__).resolve().parent.parent.parent / "configs" / "reference.yaml"


def models(model: type[Model]) -> set[type[Model]]:
    """A model and all models in it."""
    found = {model}
    for field in model.model_fields.values():
        inner = kind_of(field.annotation).model
        if inner is not None:
            found |= models(inner)
    return found


MODELS = sorted(models(RouterConfig), key=lambda model: model.__name__)


def test_file_is_up_to_date() -> None:
    """configs/reference.yaml says what the models say."""
    written = FILE.read_text(encoding="utf-8")
    assert written == reference(), (
        "regenerate it: python -m vpnrouter.config.reference > configs/reference.yaml"
    )


def test_file_is_accepted() -> None:
    """The reference file is itself a configuration without an error."""
    reading = read(FILE)
    assert reading.loaded is not None, reading.problems


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_there_and_explained(model: type[Model]) -> None:
    """Each field of each model has its string, and its key stands in the file."""
    docs = field_docs(model)
    text = reference()
    for name, field in model.model_fields.items():
        assert docs[name].endswith((".", ". Beyond: refused.")), name
        key = field.alias or name
        assert f" {key}:" in text or f"\n{key}:" in text


def test_values_are_the_defaults() -> None:
    """Every value of the reference's queue is what an empty queue has."""
    queue = yaml.safe_load(reference())["msg_vpns"]["blue"]["queues"]["orders"]
    assert Queue.model_validate(queue) == Queue()


def test_lines_are_short() -> None:
    """The file can be read beside another one."""
    assert max(map(len, reference().splitlines())) <= 100
