"""Part 3, advanced remote execution: pointers to pointers, moving data between workers, and object lifetimes."""

import torch

import syft_core as sy

hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")


def count_objects() -> tuple[int, int]:
    """Return how many objects bob and alice hold."""
    # Ask alice first: dropping a pointer there frees data on bob.
    on_alice = alice.objects_count
    return bob.objects_count, on_alice


print("A pointer can be sent too: bob holds the data, alice a pointer to it, and we a pointer to alice's pointer.")
pointer_to_bob = torch.tensor([1.0, 2.0, 3.0, 4.0]).send(bob)
x = pointer_to_bob.send(alice)
print(f"  we hold      {x}")
print(f"  alice holds  {list(alice._objects.values())}")
print(f"  bob holds    {list(bob._objects.values())}")
assert count_objects() == (1, 1)

print("\nAn operation is forwarded along the pointers: we ask alice, alice asks bob, bob computes.")
with sy.trace() as trace:
    y = x + x
print(trace)
assert [(event.sender, event.receiver) for event in trace if event.kind == "Run"] == [("me", "alice"), ("alice", "bob")]
assert count_objects() == (2, 2)

print("\nEach get() goes back one step: first alice's pointer, then bob's data.")
closer = y.get()
print(f"  y.get()       = {closer}")
assert closer.location is bob
assert count_objects() == (2, 1)
answer = closer.get()
print(f"  y.get().get() = {answer}")
assert answer.tolist() == [2.0, 4.0, 6.0, 8.0]
assert count_objects() == (1, 1)

print("\nDeleting our pointer deletes alice's pointer, and with it bob's data:")
del x, pointer_to_bob, y, closer
print(f"  objects on bob and alice: {count_objects()}")
assert count_objects() == (0, 0)

print("\n`move` sends data directly from one worker to another:")
x = torch.tensor([1.0, 2.0, 3.0]).send(bob)
with sy.trace() as trace:
    moved = x.move(alice)
print(trace)
assert count_objects() == (0, 1)
assert moved.location is alice
assert (moved * 2).get().tolist() == [2.0, 4.0, 6.0]
assert [event.direction for event in trace.departures] == [("bob", "alice")]

print("\nData on different workers cannot be combined implicitly:")
here, there = torch.ones(3).send(bob), torch.ones(3).send(alice)
try:
    here + there
except sy.exceptions.NotCollocatedError as refusal:
    print(f"  {refusal}")
else:
    raise AssertionError("data on two workers was combined")
assert (here + there.move(bob)).get().tolist() == [2.0, 2.0, 2.0]

print("\nIntermediate results live as long as there is a pointer to them:")
x = torch.ones(3).send(bob)
before = bob.objects_count
for _ in range(100):
    x = x + 1
print(f"  objects on bob before and after 100 additions: {before}, {bob.objects_count}")
assert bob.objects_count == before
