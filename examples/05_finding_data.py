"""Part 5, finding data: owners publish data with tags and descriptions; others search it without seeing values."""

import torch

import syft_core as sy

hook = sy.TorchHook(torch)
names = ["bob", "theo", "jason", "alice", "andy", "jon"]
workers = [sy.VirtualWorker(hook, id=name) for name in names]
torch.manual_seed(5)

print(f"Six owners: {', '.join(names)}. Three of them publish data about houses, two about flowers.")
for number, worker in enumerate(workers[:3]):
    rooms = torch.rand(10 + number, 13).tag("#boston", "#housing", "#data").describe("Thirteen facts about each house")
    prices = torch.rand(10 + number, 1).tag("#boston", "#housing", "#target").describe("What each house was sold for")
    rooms.publish(worker)
    prices.publish(worker)
for worker in workers[3:5]:
    torch.rand(8, 4).tag("#iris", "#data").describe("Lengths and widths of petals and sepals").publish(worker)

print("\nSearch one owner by tag, by several tags, by id or by words of the description:")
theo = workers[1]
(found,) = theo.search(["#boston", "#data"])
print(f"  {found}")
assert found.location is theo
assert found.shape == (11, 13)
assert found.tags == {"#boston", "#housing", "#data"}
assert len(theo.search("#boston")) == 2
assert len(theo.search("sold for")) == 1
assert theo.search("#iris") == []
assert len(theo.search(found.id_at_location)) == 1


def search_everywhere(*query: str) -> dict[str, list[torch.Tensor]]:
    """Search every worker; return the pointers by worker id."""
    found = {worker.id: worker.search(query) for worker in workers}
    return {name: pointers for name, pointers in found.items() if pointers}


print("\nSearch all owners in a loop:")
for tag in ("#boston", "#iris", "#nothing"):
    print(f"  {tag}: { ({name: len(pointers) for name, pointers in search_everywhere(tag).items()}) }")
assert list(search_everywhere("#boston", "#data")) == ["bob", "theo", "jason"]
assert search_everywhere("#nothing") == {}

print("\nCompute on the results directly: the mean price of all houses, from one sum per owner:")
total, count = 0.0, 0
for (prices,) in search_everywhere("#boston", "#target").values():
    total += prices.sum().get(reason="mean price").item()
    count += len(prices)
print(f"  {total / count:.3f} for {count} houses")
assert count == 33
assert 0.0 < total / count < 1.0

print("\nPublished data belongs to its owner: it stays when our pointers are deleted.")
before = theo.objects_count
del found, prices
print(f"  objects on theo: {theo.objects_count}")
assert theo.objects_count == before == 2
