"""One file for the configurations of several routers: what it would change, and changing it."""
