"""vpnrouter.server.settle: the interpreter is told what it runs."""

import gc
import sys

from vpnrouter.server.settle import SWITCH_S, YOUNG, settle


def test_what_is_there_is_frozen(interpreter: None) -> None:
    """Threads switch sooner, young objects are looked at later, and what exists is not walked again."""
    settle()
    assert sys.getswitchinterval() == SWITCH_S
    assert gc.get_threshold()[0] == YOUNG
    assert gc.get_freeze_count() > 0
