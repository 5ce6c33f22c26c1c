"""What monitoring shows of a router, made of its own objects."""
