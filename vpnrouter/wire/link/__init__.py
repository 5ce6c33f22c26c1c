"""Router to router: the link protocol of docs/link-protocol.md, bytes ↔ frames."""
