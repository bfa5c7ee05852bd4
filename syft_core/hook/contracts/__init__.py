"""The contracts between the core and a backend, one for each thing that the core must know about a framework."""
