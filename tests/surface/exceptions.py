"""The operations that behave differently on a chain than on a plain tensor, each with the reason.

The tests fail if an operation differs and is not listed here, or is listed here and does not differ.
"""

from __future__ import annotations

_SHOWS_THE_CHAIN = "shows the chain instead of the plain tensor"

TORCH: dict[str, str] = {
    "torch.Tensor.__repr__": _SHOWS_THE_CHAIN,
    "torch.Tensor.__format__": _SHOWS_THE_CHAIN,
    "torch.Tensor.__reduce_ex__": "pickling a chain is refused",
    "torch._nested_tensor_from_mask": "a nested tensor has no shape, so it cannot be wrapped",
    "torch.Tensor.to_padded_tensor": "a nested tensor has no shape, so it cannot be wrapped",
    "torch.fbgemm_linear_quantize_weight": "returns the range of the weight as a number, which leaves the chain",
}

TORCH_SPELLINGS: dict[str, str] = dict.fromkeys(
    (
        "_batch_norm_with_update:op",
        "_chunk_cat:op",
        "_native_batch_norm_legit:op",
        "_softmax_backward_data:op",
        "_unsafe_masked_index:op",
        "_unsafe_masked_index_put_accumulate:op",
        "_upsample_bilinear2d_aa:op",
        "max_pool2d_with_indices_backward:op",
        "native_dropout_backward:op",
        "slice:op",
        "torch.ops.aten._safe_softmax.default:op",
        "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:op",
    ),
    "private to torch, or called as torch.ops.aten.…: not in the op table",
)
"""What torch's tests call besides the functions in the table, by the name of the sample and the spelling."""

NUMPY: dict[str, str] = dict.fromkeys(
    ("numpy.char.rsplit", "numpy.char.split", "numpy.char.splitlines"),
    "the result is an array of Python objects, which a chain refuses: they can have any size",
)

NUMPY_BEFORE_2_4: dict[str, str] = {
    "numpy.count_nonzero": "before numpy 2.4 the count is a Python int; on a chain it is an array, as later",
}
"""Operations that differ only if the installed numpy returns Python numbers."""

REFERENCE = {"torch": "2.13", "numpy": "2.4"}
"""The versions for which the tables above are exact; with others, a sample or an exception may be missing."""
