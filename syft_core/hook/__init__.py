"""The road of one operation: dispatch, plans, op tables and hooks."""
