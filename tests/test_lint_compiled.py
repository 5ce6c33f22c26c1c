"""What the compiled build would never free is found in sources, and nothing else is."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent

OPEN_BASE: Final = """
from mypy_extensions import mypyc_attr

@mypyc_attr(allow_interpreted_subclasses=True)
class Base:
    __slots__ = ("name", "rule")

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin()

    def begin(self) -> None:
        self.rule = self.name
"""

CLOSED_BASE: Final = """
class Base:
    def __init__(self, name: str) -> None:
        self.name = name
"""

BELOW: Final = "from vpnrouter.base import Base\n\nclass Below(Base):\n    __slots__ = ('own',)\n\n"

MIDDLE: Final = (
    "from vpnrouter.base import Base\n\nclass Middle(Base):\n    __slots__ = ()\n\n"
    "    def __init__(self, name: str) -> None:\n        super().__init__(name)\n\n"
    "class Below(Middle):\n    __slots__ = ('own',)\n\n"
)


def init(*statements: str) -> str:
    """An `__init__` of these statements."""
    return "    def __init__(self, name: str) -> None:\n" + "".join(
        f"        {statement}\n" for statement in statements
    )


SUPER: Final = "super().__init__(name)"

FAULTY: Final[dict[str, tuple[str, str, str]]] = {
    "after": (OPEN_BASE, BELOW + init(SUPER, "self.name = name + 'x'"), "sets name"),
    "before": (CLOSED_BASE, BELOW + init("self.name = name + 'x'", SUPER), "sets name"),
    "closed-after": (CLOSED_BASE, BELOW + init(SUPER, "self.name = name"), "sets name"),
    "by-name": (OPEN_BASE, BELOW + init(SUPER, "self.name: str = name"), "sets name"),
    "in-a-branch": (OPEN_BASE, BELOW + init(SUPER, "if name: self.name = name"), "sets name"),
    "in-a-pair": (OPEN_BASE, BELOW + init(SUPER, "self.own, self.name = name, name"), "sets name"),
    "added-to": (OPEN_BASE, BELOW + init(SUPER, "self.name += name"), "sets name"),
    "in-a-for": (OPEN_BASE, BELOW + init(SUPER, "for self.name in 'ab': pass"), "sets name"),
    "set-by-a-method": (OPEN_BASE, BELOW + init(SUPER, "self.rule = name"), "sets rule"),
    "two-below": (OPEN_BASE, MIDDLE + init(SUPER, "self.name = name"), "sets name"),
    "not-its-own-init": (OPEN_BASE, BELOW, "inherits __init__ of Base"),
    "base-twice": (CLOSED_BASE, BELOW + init(SUPER, SUPER), "more than once"),
    "base-in-a-loop": (CLOSED_BASE, BELOW + init(f"for _ in 'ab': {SUPER}"), "more than once"),
    "base-by-its-name": (CLOSED_BASE, BELOW + init("Base.__init__(self, name)"), "calls __init__"),
    "again": (
        CLOSED_BASE,
        BELOW + init(SUPER) + "\ndef again(one: Below) -> None:\n    one.__init__('x')\n",
        "calls __init__",
    ),
}

SOUND: Final[dict[str, tuple[str, str]]] = {
    "own-attribute": (OPEN_BASE, BELOW + init(SUPER, "self.own = name", "self.own = name + 'x'")),
    "both-branches": (OPEN_BASE, BELOW + init(SUPER, "self.own = name if name else 'x'")),
    "of-another": (OPEN_BASE, BELOW + init(SUPER, "other = Base(name)", "other.name = name")),
    "in-a-method": (
        OPEN_BASE,
        BELOW + init(SUPER) + "\n    def move(self) -> None:\n        self.name = 'x'\n",
    ),
    "read": (OPEN_BASE, BELOW + init(SUPER, "self.own = self.name")),
    "open-heir": (OPEN_BASE, BELOW.replace("\nclass", "\n@mypyc_attr(allow_interpreted_subclasses=True)\nclass")),
    "closed-heir": (CLOSED_BASE, BELOW),
    "not-compiled": ("", BELOW + init(SUPER, "self.name = name")),
}  # fmt: skip


@pytest.fixture(scope="module")
def lint() -> ModuleType:
    """The program that finds them."""
    sys.path.insert(0, str(ROOT))
    try:
        spec = importlib.util.spec_from_file_location("lint_compiled", ROOT / "lint_compiled.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT))
    return module


@pytest.mark.parametrize("name", FAULTY)
def test_what_would_never_be_freed_is_found(lint: ModuleType, name: str) -> None:
    """Each form gives one fault, which names the place and the reason."""
    base, below, text = FAULTY[name]
    (fault,) = lint.faults({"vpnrouter/base.py": base, "vpnrouter/below.py": below})
    assert fault.path == "vpnrouter/below.py"
    assert below.splitlines()[fault.line - 1].strip()
    assert text in fault.text


@pytest.mark.parametrize("name", SOUND)
def test_sound_classes_are_left_alone(lint: ModuleType, name: str) -> None:
    """What the compiled build frees is no fault."""
    base, below = SOUND[name]
    assert lint.faults({"vpnrouter/base.py": base, "vpnrouter/below.py": below}) == []


def test_the_compiled_modules_keep_to_the_rules(lint: ModuleType) -> None:
    """All modules that pyproject.toml has compiled are looked at, and none has a fault."""
    sources = lint.compiled(ROOT)
    assert "vpnrouter/core/mqtt/session.py" in sources
    assert lint.faults(sources) == []
