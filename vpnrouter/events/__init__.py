"""The events of a router: their catalogue, their log and their thresholds."""
