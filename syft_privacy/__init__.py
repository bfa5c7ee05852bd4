"""Privacy in numbers: guarantees, conversions and exact noise; needs numpy, and no hook (docs/pate-analysis.md)."""
