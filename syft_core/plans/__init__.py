"""Plans: record a function's operations once, send them to a worker, and run them there with one message per call."""
