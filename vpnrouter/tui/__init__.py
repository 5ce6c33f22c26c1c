"""The terminal interface: what the routers are and do, over their management APIs, in a process of its own."""
