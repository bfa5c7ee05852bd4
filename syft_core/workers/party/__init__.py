"""The party: a worker, what it stores, and what it does with each message."""
