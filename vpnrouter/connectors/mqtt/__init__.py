"""MQTT brokers as providers: the router is the client. Pure: no I/O, no clock, no randomness."""
