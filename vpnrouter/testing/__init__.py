"""Public test kit: a network that can be broken."""
