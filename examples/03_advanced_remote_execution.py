"""Part 3, advanced remote execution: pointers to pointers, moving from worker to worker, and who keeps what alive."""

import torch

import syft_core as sy

hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")


def counts() -> tuple[int, int]:
    """Return how many objects bob and alice hold; a pointer that alice drops frees what it points to at bob's."""
    at_alice = alice.objects_count
    return bob.objects_count, at_alice


print("A pointer is an object too: bob has the data, alice a pointer to it, and we a pointer to that.")
pointer_to_bob = torch.tensor([1.0, 2.0, 3.0, 4.0]).send(bob)
x = pointer_to_bob.send(alice)
print(f"  we hold      {x}")
print(f"  alice holds  {list(alice._objects.values())}")
print(f"  bob holds    {list(bob._objects.values())}")
assert counts() == (1, 1)

print("\nAn operation goes all the way: we tell alice, alice tells bob, bob computes.")
with sy.trace() as trace:
    y = x + x
print(trace)
assert [(event.sender, event.receiver) for event in trace if event.kind == "Run"] == [("me", "alice"), ("alice", "bob")]
assert counts() == (2, 2)

print("\nThe way back has the same steps: alice's pointer, then bob's data.")
closer = y.get()
print(f"  y.get()       = {closer}")
assert closer.location is bob
assert counts() == (2, 1)
answer = closer.get()
print(f"  y.get().get() = {answer}")
assert answer.tolist() == [2.0, 4.0, 6.0, 8.0]
assert counts() == (1, 1)

print("\nDropping our pointer drops alice's, and with it bob's data:")
del x, pointer_to_bob, y, closer
print(f"  objects at bob and alice: {counts()}")
assert counts() == (0, 0)

print("\n`move` sends data from worker to worker, without passing here:")
x = torch.tensor([1.0, 2.0, 3.0]).send(bob)
with sy.trace() as trace:
    moved = x.move(alice)
print(trace)
assert counts() == (0, 1)
assert moved.location is alice
assert (moved * 2).get().tolist() == [2.0, 4.0, 6.0]
assert [event.direction for event in trace.departures] == [("bob", "alice")]

print("\nData on two workers cannot meet by accident:")
here, there = torch.ones(3).send(bob), torch.ones(3).send(alice)
try:
    here + there
except sy.exceptions.NotCollocatedError as refusal:
    print(f"  {refusal}")
else:
    raise AssertionError("data of two workers met")
assert (here + there.move(bob)).get().tolist() == [2.0, 2.0, 2.0]

print("\nIntermediate results live as long as a pointer to them does:")
x = torch.ones(3).send(bob)
before = bob.objects_count
for _ in range(100):
    x = x + 1
print(f"  objects at bob before and after a loop of 100 additions: {before}, {bob.objects_count}")
assert bob.objects_count == before
