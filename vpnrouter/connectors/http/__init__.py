"""Web hooks: a connector whose provider is an HTTP server, to which messages are sent."""
