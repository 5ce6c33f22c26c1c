"""The management API: what a router is and does, over HTTP, in the shape of the field's SEMP v2."""
