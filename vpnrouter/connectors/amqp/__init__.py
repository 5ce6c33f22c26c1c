"""Connections of connectors to brokers that speak AMQP 1.0, among them the providers of JMS."""
