"""Events: what an operator is told, under the names that the field has for it."""
