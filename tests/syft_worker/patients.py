"""A table of patients, and what its owner says about the columns."""

from __future__ import annotations

from typing import Any

CELLS = """age,sex,admitted,bmi,ill
63,f,2026-01-31,22.5,1
41,m,2025-12-01,,0
50,f,1970-01-02,31,1
"""
SCHEMA: dict[str, Any] = {
    "age": {"unit": "years", "range": [18, 100]},
    "sex": {"categories": ["m", "f", "x"]},
    "admitted": {"type": "date", "range": ["1960-01-01", "2030-01-01"]},
    "bmi": {"unit": "kg/m2", "missing": "keep"},
}
