"""Moving: how objects leave, arrive and change places."""
