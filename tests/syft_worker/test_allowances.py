"""Users without an entry of their own have the defaults."""

from __future__ import annotations

from syft_worker.allowances import Allowance, find_allowance, limit_bytes


def test_the_memory_of_users_without_a_limit_of_their_own_is_limited() -> None:
    users = limit_bytes({"ana": Allowance(bytes=5), "bo": Allowance(objects=7)}, 1000)

    assert find_allowance(users, "ana").bytes == 5
    assert find_allowance(users, "bo") == Allowance(objects=7, bytes=1000)
    assert find_allowance(users, "eve") == Allowance(bytes=1000)
