"""The link protocol of docs/link-protocol.md, router to router: bytes ↔ frames."""
