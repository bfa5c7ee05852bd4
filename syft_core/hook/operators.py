"""Python's operators, the operations they stand for, and the short names of operations."""

from __future__ import annotations

from collections.abc import Mapping

OPERATORS: Mapping[str, str] = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__pow__": "pow",
    "__matmul__": "matmul",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
}
COMPARATORS: Mapping[str, str] = {
    "__eq__": "eq",
    "__ne__": "ne",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
}
UNARY_OPERATORS: Mapping[str, str] = {
    "__neg__": "neg",
    "__pos__": "positive",
    "__abs__": "abs",
    "__invert__": "bitwise_not",
}
# A list, because `__index__`, `__int__` and `__invert__` also start with `__i`.
INPLACE_OPERATORS: Mapping[str, str] = {f"__i{name[2:]}": operation for name, operation in OPERATORS.items()}
REFLECTED_OPERATORS: Mapping[str, str] = {f"__r{name[2:]}": operation for name, operation in OPERATORS.items()}
# Other names of these operations in frameworks.
SYNONYMS: Mapping[str, str] = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "power": "pow",
    "negative": "neg",
    "absolute": "abs",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "mod": "remainder",
    "invert": "bitwise_not",
}


def operation_name(op: str) -> str:
    """Return the short name of an operation of an op table.

    >>> [operation_name(f"frame.Tensor.{name}") for name in ("__add__", "__imul__", "grad.__get__", "__getitem__")]
    ['add', 'mul_', 'grad', 'getitem']
    """
    *path, attr = op.split(".")
    if attr in ("__get__", "__set__"):
        return path[-1] if attr == "__get__" else f"set {path[-1]}"
    for table in (OPERATORS, COMPARATORS, UNARY_OPERATORS, REFLECTED_OPERATORS):
        if attr in table:
            return table[attr]
    if attr in INPLACE_OPERATORS:
        return f"{INPLACE_OPERATORS[attr]}_"
    return attr.removeprefix("__").removesuffix("__")
