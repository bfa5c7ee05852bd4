"""The path of one operation: dispatch, plans, op tables and hooks."""
