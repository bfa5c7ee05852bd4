from __future__ import annotations

import pytest

from syft_worker.throttle import FREE, Throttle


def test_the_wait_doubles_up_to_a_minute_and_is_forgotten() -> None:
    now, waits = [0.0], []
    throttle = Throttle(lambda: now[0])
    for _ in range(FREE - 1):
        throttle.note_failure("a")
    assert throttle.wait_for("a") == 0

    for _ in range(8):
        throttle.note_failure("a")
        waits.append(throttle.wait_for("a"))
        now[0] += waits[-1]
        assert throttle.wait_for("a") == 0

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    now[0] += 601
    throttle.note_failure("a")
    assert throttle.wait_for("a") == 0


@pytest.mark.parametrize(
    ("guesses", "waits", "free"),
    [
        ("2001:db8::{:x}", "2001:db8::ffff", "2001:db8:0:1::1"),
        ("fe80::{:x}%eth0", "fe80::ffff%eth1", "fe80:0:0:1::1"),
        ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"),
    ],
)
def test_the_addresses_of_a_network_wait_together(guesses: str, waits: str, free: str) -> None:
    throttle = Throttle(lambda: 0.0)

    for number in range(FREE):
        throttle.note_failure(guesses.format(number))

    assert throttle.wait_for(waits) == 1
    assert throttle.wait_for(free) == 0
