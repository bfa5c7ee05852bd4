"""Build your own tensor type: a layer that clips values to a bound, as differential privacy requires.

A layer is between the wrapper that a user holds and the data. Operations that it does not override run on the data.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch

import syft_core as sy
from syft_core.tensors.codecs import register_layer_codec

hook = sy.TorchHook(torch)


class ClippedTensor(sy.AbstractTensor):
    """Clip the results of additions and multiplications to [-bound, bound]."""

    seen: ClassVar[list[str]] = []

    def __init__(self, bound: float = 1.0, **options: Any) -> None:
        super().__init__(**options)
        self.bound = bound

    def get_class_attributes(self) -> dict[str, Any]:
        """Return the constructor arguments; results are created with them."""
        return {"bound": self.bound}

    @sy.overloaded.method
    def add(self, _self: Any, *args: Any, **kwargs: Any) -> Any:
        """Handle `x + y`, `x.add(y)`, `torch.add(x, y)` and `x += y`: `_self` is the child, `self` the layer."""
        return _self.add(*args, **kwargs).clamp(-self.bound, self.bound)

    @sy.overloaded.method
    def mul(self, _self: Any, other: Any) -> Any:
        """Handle all spellings of multiplication."""
        return (_self * other).clamp(-self.bound, self.bound)

    @staticmethod
    @sy.overloaded.module
    def torch(module: Any) -> None:
        """Override functions by the path of their module."""

        @sy.overloaded.module
        def nn(module: Any) -> None:
            @sy.overloaded.module
            def functional(module: Any) -> None:
                @sy.overloaded.function
                def relu(x: Any, inplace: bool = False) -> Any:
                    """Handle `torch.nn.functional.relu(x)`: functions only receive children."""
                    return x.clamp(min=0)

                module.relu = relu

            module.functional = functional

        module.nn = nn

    @classmethod
    def on_function_call(cls, command: Any) -> None:
        """Record every function before it runs."""
        cls.seen.append(command[0])


# Register it as a layer, and with a codec (wire codes from 1,000 on are free for users).
sy.hook_args.default_register_tensor(ClippedTensor)
register_layer_codec(ClippedTensor, code=1_001)


print("Put the layer on a tensor, under the wrapper that we hold:")
x = ClippedTensor(bound=4.0).on(torch.tensor([1.0, -2.0, 3.0]))
print(f"  {x}")
assert repr(x) == "(Wrapper)>ClippedTensor>tensor([ 1., -2.,  3.])"

print("\nOne rule handles every spelling of an operation:")
for name, result in {"x + x": x + x, "x.add(x)": x.add(x), "torch.add(x, x)": torch.add(x, x), "x * 3": x * 3}.items():
    print(f"  {name:16} {result}")
    assert result.child.child.abs().max() <= 4.0
    assert result.child.bound == 4.0, "a result has the attributes of its layer"

print("\nFunctions can be overridden by their path, and the layer type is notified of each:")
print(f"  relu(x)          {torch.nn.functional.relu(x)}")
assert torch.nn.functional.relu(x).child.child.tolist() == [1.0, 0.0, 3.0]
assert "torch.nn.functional.relu" in ClippedTensor.seen

print("\nOperations without a rule run on the child, and the result gets the layer again:")
print(f"  x.cumsum(0)      {x.cumsum(0)}")
assert x.cumsum(0).child.child.tolist() == [1.0, -1.0, 2.0]

print("\nLayers of one type with different attributes are not mixed silently:")
try:
    x + ClippedTensor(bound=1.0).on(torch.ones(3))
except sy.exceptions.SyftError as refusal:
    print(f"  {refusal}")
else:
    raise AssertionError("two bounds were mixed")

print("\nThe layer can be sent: bob computes with the same rules, and the whole chain comes back.")
for serialize in (False, True):
    bob = sy.VirtualWorker(hook, id=f"bob, serialize={serialize}", serialize=serialize)
    pointer = x.send(bob)
    result = (pointer + pointer).get()
    print(f"  {result}")
    assert type(result.child) is ClippedTensor
    assert result.child.bound == 4.0
    assert result.child.child.tolist() == [2.0, -4.0, 4.0]
