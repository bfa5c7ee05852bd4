"""Workers in the actors of Ray: many per process, on one machine or on a cluster (docs/ray.md)."""
