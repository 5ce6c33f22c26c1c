"""How requests say who sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vpnrouter.connectors.settings import ProviderSettings


def authorization(settings: ProviderSettings) -> tuple[str, str, str]:
    """Return the value of Authorization (RFC 7617, 2; RFC 6750, 2.1), and why it cannot be sent and by which setting;
    "" for none.
    """
    token = settings.token
    if token is not None:
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            return "", "the token has characters that no header carries", "token"
        return f"Bearer {token}", "", ""
    if not settings.username:
        return "", "", ""
    if ":" in settings.username:
        why = "the username has a colon, which the basic scheme does not allow"
        return "", why, "username"
    return f"Basic {settings.basic}", "", ""
