"""Part 1, basic tools: send a tensor to a worker, compute on it there, and get the result."""

import torch

import syft_core as sy

hook = sy.TorchHook(torch)

print("Plain torch works as usual:")
x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
print(f"  x + x = {x + x}")
assert (x + x).tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]

print("\nBob is another party. Here it is a worker in our process; in production it would be a server.")
bob = sy.VirtualWorker(hook, id="bob")
x_ptr = x.send(bob).tag("#x")
print(f"  we hold a pointer:  {x_ptr.child}")
print(f"  bob holds the data: {bob}")
print(f"  we know its form:   {tuple(x_ptr.shape)}, {x_ptr.dtype}")
assert bob.objects_count == 1
assert x_ptr.location is bob
assert x_ptr.owner is hook.local_worker
assert x_ptr.shape == x.shape

print("\nOperations on pointers run on bob, in ordinary torch:")
y_ptr = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0]).send(bob).tag("#y")
z_ptr = x_ptr + y_ptr
w_ptr = torch.add(x_ptr, y_ptr)
print(f"  x + y = {z_ptr}")
assert bob.objects_count == 4

print("\nA remote value is never revealed implicitly:")
try:
    z_ptr.sum().item()
except sy.exceptions.ValueRefusedError as refusal:
    print(f"  {refusal}")
else:
    raise AssertionError("a remote value was revealed")

print("\nFetch it explicitly; the object then leaves bob:")
z = z_ptr.get(reason="a first look")
print(f"  {z}")
assert z.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0]
assert w_ptr.get().tolist() == z.tolist()
assert bob.objects_count == 2

print("\nGradients are computed where the data is:")
weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], requires_grad=True).send(bob).tag("#weights")
target = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0]).send(bob).tag("#target")
loss = ((weights - target) ** 2).sum()
loss.backward()
gradient = weights.get().grad
print(f"  gradient = {gradient}")
assert gradient.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]

print("\nBob's ledger records everything that left, and what it was computed from:")
print(bob.ledger)
assert len(bob.ledger) == 3
assert {line.user for line in bob.ledger} == {"worker me"}
