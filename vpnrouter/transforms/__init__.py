"""Changes messages on their way over a link: properties, topic, priority, life time and payload."""
