"""Encrypted programs: share numbers among workers, and compute on them while nobody knows them."""

import secrets

import torch

import syft_core as sy

hook = sy.TorchHook(torch)
bob = sy.VirtualWorker(hook, id="bob")
alice = sy.VirtualWorker(hook, id="alice")
carol = sy.VirtualWorker(hook, id="carol")

print("Sharing by hand: a random number, and the secret minus that number, modulo 2^64.")
RING = 2**64


def split(secret: int) -> tuple[int, int]:
    """Return two numbers that add up to the secret; each on its own is random."""
    mask = secrets.randbelow(RING)
    return mask, (secret - mask) % RING


five, three = split(5), split(3)
print(f"  5 = {five[0]} + {five[1]}  (modulo 2^64)")
total = [one + other for one, other in zip(five, three, strict=True)]
print(f"  each party adds its own shares, and together they have {sum(total) % RING}")
assert sum(total) % RING == 8

print("\nThe same with workers. Each holds a random number:")
x = torch.tensor([25, -3]).share(bob, alice, crypto_provider=carol)
for worker in (bob, alice):
    print(f"  {worker.id} holds {next(iter(worker._objects.values())).tolist()}")
assert next(iter(bob._objects.values())).tolist() != [25, -3]
print("  the chain ends with a pointer to each of them:")
for name, pointer in x.child.child.items():
    print(f"    {name}: {pointer}")
by_hand = sum(pointer.get(deregister_ptr=False) for pointer in x.child.child.values())
print(f"  anyone who has all of them can add them: {by_hand.tolist()}")
assert by_hand.tolist() == [25, -3]
print(f"  get() adds them: {x.copy().get().tolist()}")

print("\nAdd, multiply, compare: the result is shared too.")
y = torch.tensor([5, 2]).share(bob, alice, crypto_provider=carol)
for text, result in (
    ("x + y", x + y),
    ("x - y", x - y),
    ("x * y", x * y),
    ("2 * x", 2 * x),
    ("x > y", x > y),
    ("x == y", x == y),
    ("x @ y", x @ y),
    ("max(x)", x.max()),
):
    print(f"  {text:6} = {result.get().tolist()}")
assert (x * y).get().tolist() == [125, -6]
assert (x > y).get().tolist() == [1, 0]

print("\nReal numbers become integers first, here in steps of 1/65536:")
precision = {"base": 2, "precision_fractional": 16}
weights = torch.tensor([[0.5, -1.25], [2.0, 0.1]])
a = weights.fix_precision(**precision).share(bob, alice, crypto_provider=carol)
product = (a @ a).get().float_precision()
print(f"  a @ a = {product.tolist()}")
assert torch.allclose(product, weights @ weights, atol=1e-4)
largest, columns = [result.get().float_precision().tolist() for result in a.max(dim=1)]
print(f"  the largest of each row: {largest}, in columns {columns}")
assert (largest, columns) == ([0.5, 2.0], [0.0, 0.0])

print("\nWith three parties, two of them together still know nothing:")
dave = sy.VirtualWorker(hook, id="dave")
salaries = [torch.tensor([number]).share(bob, alice, dave, crypto_provider=carol) for number in (4200, 3900, 5100)]
mean = (salaries[0] + salaries[1] + salaries[2]).get().item() / 3
print(f"  the mean salary is {mean:.0f}")
assert mean == 4400

print("\nWhat it costs, for a million products and for one:")
for size in (1_000_000, 1):
    ones = torch.ones(size, dtype=torch.int64).share(bob, alice, crypto_provider=carol)
    with sy.crypto.count() as counted:
        squares = ones * ones
    print(f"  {size:9,} products: {counted.rounds} round, {counted.bytes:,} bytes")
assert counted.rounds == 1

print("\nEvery party decides what is opened, and records it:")
bob.policy = "nothing"
try:
    y.get()
except sy.exceptions.GetNotPermittedError as error:
    print(f"  refused: {str(error).partition(': ')[2]}")
else:
    raise AssertionError("bob's policy was not asked")
print(f"  so far, {len(bob.ledger)} shares left bob, and {len(alice.ledger)} left alice")
assert len(bob.ledger) == len(alice.ledger) > 0
