"""The operations that do not do on a chain what they do on a plain tensor, each with the reason.

The tests fail when an operation differs and is not listed here, and when one is listed here and does not differ.
"""

from __future__ import annotations

_SHOWS_THE_CHAIN = "shows the chain instead of pretending to be a plain tensor"

TORCH: dict[str, str] = {
    "torch.Tensor.__repr__": _SHOWS_THE_CHAIN,
    "torch.Tensor.__format__": _SHOWS_THE_CHAIN,
    "torch.Tensor.__reduce_ex__": "pickling a chain is refused: nothing is ever unpickled",
    "torch._nested_tensor_from_mask": "a nested tensor has no shape, so a wrapper cannot stand for one",
    "torch.Tensor.to_padded_tensor": "a nested tensor has no shape, so a wrapper cannot stand for one",
    "torch.fbgemm_linear_quantize_weight": "tells the range of the weight as a number: a value, which leaves the chain",
}

TORCH_AROUND_THE_PROTOCOL: dict[str, str] = {
    "torch.autograd.backward": "older versions of torch do not ask the chain and raise: call `x.backward()`",
}
"""What differs only where the installed torch does not send it through its protocol."""

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
"""What torch's tests call beside the functions in the table, by the name of the sample and the spelling."""

NUMPY: dict[str, str] = {}

NUMPY_OF_PYTHON: dict[str, str] = {
    "numpy.count_nonzero": "numpy before 2.4 counts with a number of Python; on a chain that is an array, as later",
}
"""What differs only where the installed numpy returns values as Python's own numbers."""

REFERENCE = {"torch": "2.13", "numpy": "2.4"}
"""The versions for which the tables above are exact. With others, an operation may lack a sample or an exception."""
