"""The floor for ``encrypted.py``: what this machine allows, not a product.

Two processes, raw TCP, and nothing else: no API, no authentication, no checks. The trust model is that of the peers
with two parties: semi-honest, and party 0 deals the correlated randomness. Each party expands its own seed with AES;
party 0 knows both seeds and keeps the correction, so a triple costs no bytes. Truncation is local: biased, and wrong
with a small probability. Sigmoid and softmax are missing: their cost depends on the approximation, not on the machine.

Values are elements of Z_2^64 (uint64 arrays) with 16 fraction bits. Comparisons work on bits shared by XOR.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from engines import Engine, serve_parties
from tasks import LEARNING_RATE, Task

FRACTION_BITS = 16
ONE = np.uint64(1)
CHUNK = 1 << 24
Array = np.ndarray


class Floor(Engine):
    """One party."""

    def __init__(self, rank: int, sockets: list[socket.socket], seeds: list[bytes]) -> None:
        torch.set_num_threads(1)
        self.rank, self.link = rank, Link(sockets[rank])
        self.own = Stream(seeds[rank])
        self.other = Stream(seeds[1]) if rank == 0 else None  # only the dealer knows it

    def load(self, task: Task) -> Callable[[], Any]:
        if not hasattr(self, task.kind):
            raise NotImplementedError(f"the floor has no {task.kind}")
        function = getattr(self, task.kind)
        masks = np.random.default_rng(5)  # both parties draw the same masks
        inputs = [self._share(array, masks) for array in task.inputs()]
        self.is_scaled = task.kind != "lt"
        return lambda: function(*inputs)

    def _share(self, array: Array, masks: np.random.Generator) -> Array:
        mask = masks.integers(0, 2**64, array.shape, dtype=np.uint64)
        return encode(array) - mask if self.rank == 0 else mask

    def reveal(self, result: Array | list[Array]) -> Any:
        if isinstance(result, list):
            return [self.reveal(part) for part in result]
        total = np.ascontiguousarray(result)
        total = (total + self.link.exchange(total)).view(np.int64)
        return total / 2.0**FRACTION_BITS if self.is_scaled else total

    def count(self, run: Callable[[], Any]) -> dict[str, int]:
        self.link.rounds = self.link.bytes = 0
        run()
        return {"rounds": self.link.rounds, "bytes": self.link.bytes}

    def synchronize(self) -> None:
        self.link.exchange(np.zeros(1, np.uint64))

    # --- products

    def multiply(self, x: Array, y: Array, product: Callable[[Array, Array], Array]) -> Array:
        """Multiply with a Beaver triple, in one round: open e = x - a and d = y - b."""
        a, b, c = self._triple(x.shape, y.shape, product)
        message = np.empty(x.size + y.size, np.uint64)
        e, d = message[: x.size].reshape(x.shape), message[x.size :].reshape(y.shape)
        np.subtract(x, a, out=e)
        np.subtract(y, b, out=d)
        message += self.link.exchange(message)
        if self.rank == 0:
            b += d
        c += product(e, b)
        c += product(a, d)
        return c

    def _triple(self, x_shape: tuple[int, ...], y_shape: tuple[int, ...], product: Any) -> tuple[Array, Array, Array]:
        a, b = self.own.words(x_shape), self.own.words(y_shape)
        shape = product(np.empty(x_shape, np.uint64), np.empty(y_shape, np.uint64), shape_only=True)
        if self.other is None:
            return a, b, self.own.words(shape)
        whole_a, whole_b = a + self.other.words(x_shape), b + self.other.words(y_shape)
        return a, b, product(whole_a, whole_b) - self.other.words(shape)

    def truncate(self, x: Array) -> Array:
        """Drop the fraction bits that a product has too many, each party by itself."""
        signed = x.view(np.int64)
        return (signed >> FRACTION_BITS if self.rank == 0 else -(-signed >> FRACTION_BITS)).view(np.uint64)

    # --- comparisons

    def multiply_bits(self, x: Array, y: Array) -> Array:
        """Return the AND of words shared by XOR, in one round."""
        a, b = self.own.bits(x), self.own.bits(x)
        if self.other is None:
            c = self.own.bits(x)
        else:
            c = ((a ^ self.other.bits(x)) & (b ^ self.other.bits(x))) ^ self.other.bits(x)
        message = np.concatenate((x ^ a, y ^ b))
        message ^= self.link.exchange(message)
        e, d = message[: x.size], message[x.size :]
        c ^= (e & b) ^ (d & a)
        return c ^ (e & d) if self.rank == 0 else c

    def is_negative(self, x: Array) -> Array:
        """Return the top bit of a flat array, shared by XOR, in seven rounds.

        The top bit of x0 + x1 is that of x0 ^ x1 ^ carry. A tree computes the carry out of the 63 lower bits: a pair
        (generate, propagate) covers a range of bits, and each level joins two neighbours, so the words halve.
        """
        nothing = np.zeros_like(x)
        mine, theirs = (x, nothing) if self.rank == 0 else (nothing, x)
        generate, propagate = self.multiply_bits(mine << ONE, theirs << ONE), x << ONE
        for width in (32, 16, 8, 4, 2, 1):
            low_generate, high_generate = halve(generate, width)
            low_propagate, high_propagate = halve(propagate, width)
            joined = self.multiply_bits(
                np.concatenate((low_propagate, low_generate)), np.concatenate((high_propagate, high_propagate))
            )
            propagate, generate = joined[: x.size], high_generate ^ joined[x.size :]
        return ((x >> np.uint64(63)).astype(np.uint8) ^ generate) & np.uint8(1)

    def keep_positive(self, x: Array, negative: Array) -> Array:
        """Return x where the bit shared by XOR is 0, else 0, in one round.

        With y = 1 - bit, the product is the sum of x_i * (y_0 ^ y_1) = x_i * y_i + (1 - 2 y_i) x_i * y_j over both
        parties i; one Beaver multiplication of (1 - 2 y_i) x_i with y_i gives the cross terms, and the terms that
        a party can compute by itself replace those that it adds.
        """
        y = negative.astype(np.uint64)
        if self.rank == 0:
            y ^= ONE
        signed = (ONE - (y << ONE)) * x
        return self.multiply(signed, y, times) + (x - signed) * y

    # --- tasks

    def mul(self, x: Array, y: Array) -> Array:
        return self.truncate(self.multiply(x, y, times))

    def matmul(self, x: Array, y: Array) -> Array:
        return self.truncate(self.multiply(x, y, multiply_matrices))

    def conv2d(self, x: Array, w: Array) -> Array:
        return self.truncate(self.multiply(x, w, convolve))

    def relu(self, x: Array) -> Array:
        flat = x.ravel()
        return self.keep_positive(flat, self.is_negative(flat)).reshape(x.shape)

    def lt(self, x: Array, y: Array) -> Array:
        """Convert the sign of x - y into an arithmetic share with a random bit r, shared in both ways."""
        negative = self.is_negative((x - y).ravel())
        r = self.own.bits(negative) & np.uint8(1)
        if self.other is None:
            whole = self.own.words(r.shape)
        else:
            whole = ((r ^ self.other.bits(r)) & np.uint8(1)).astype(np.uint64) - self.other.words(r.shape)
        masked = negative ^ r
        masked = (masked ^ self.link.exchange(masked)).astype(np.uint64)
        result = whole * (ONE - (masked << ONE))
        return result + masked if self.rank == 0 else result

    def max_pool2d(self, x: Array) -> Array:
        """Find the greater of two columns, then of two rows."""
        x = self._greater(x[..., 0::2], x[..., 1::2])
        return self._greater(x[..., 0::2, :], x[..., 1::2, :])

    def _greater(self, x: Array, y: Array) -> Array:
        return y + self.relu(x - y)

    def mlp(self, x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
        return self.matmul(self.relu(self.matmul(x, w1.T) + b1), w2.T) + b2

    def cnn(self, x: Array, *layers: Array) -> Array:
        c1, cb1, c2, cb2, w1, b1, w2, b2, w3, b3 = layers
        x = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)))
        x = self.max_pool2d(self.relu(self.conv2d(x, c1) + cb1[:, None, None]))
        x = self.max_pool2d(self.relu(self.conv2d(x, c2) + cb2[:, None, None])).reshape(len(x), -1)
        return self.matmul(self.relu(self.matmul(self.relu(self.matmul(x, w1.T) + b1), w2.T) + b2), w3.T) + b3

    def train(self, x: Array, *rest: Array) -> list[Array]:
        w1, b1, w2, b2, labels = rest
        z = self.matmul(x, w1.T) + b1
        negative = self.is_negative(z.ravel())
        hidden = self.keep_positive(z.ravel(), negative).reshape(z.shape)
        output = self.matmul(hidden, w2.T) + b2
        error = output - labels
        rate = encode(np.array(2 * LEARNING_RATE / output.size * 2**FRACTION_BITS))  # with twice the fraction bits
        grad_z = self.keep_positive(self.matmul(error, w2).ravel(), negative).reshape(z.shape)
        grads = [self.matmul(grad_z.T, x), grad_z.sum(0), self.matmul(error.T, hidden), error.sum(0)]
        steps = [self.truncate(self.truncate(grad * rate)) for grad in grads]
        return [old - step for old, step in zip([w1, b1, w2, b2], steps, strict=True)]


class Link:
    """A TCP connection to the other party that counts rounds and bytes."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.rounds = self.bytes = 0

    def exchange(self, message: Array) -> Array:
        """Send a contiguous array; return that of the other party, which has the same form."""
        received = np.empty_like(message)
        source, target = (memoryview(array.reshape(-1)).cast("B") for array in (message, received))
        self.rounds += 1
        self.bytes += len(source)
        if len(source) <= 1 << 17:  # fits into the buffers of the system, so that both may send first
            self.sock.sendall(source)
            done = 0
            while done < len(target):
                done += self.sock.recv_into(target[done:])
        else:
            self._exchange_at_once(source, target)
        return received

    def _exchange_at_once(self, source: memoryview, target: memoryview) -> None:
        sent = done = 0
        while sent < len(source) or done < len(target):
            reading = [self.sock] if done < len(target) else []
            writing = [self.sock] if sent < len(source) else []
            readable, writable, _ = select.select(reading, writing, [])
            if readable:
                done += self.sock.recv_into(target[done:])
            if writable:
                sent += self.sock.send(source[sent : sent + (1 << 20)], socket.MSG_DONTWAIT)


class Stream:
    """Random words from a seed: AES in counter mode."""

    zeros = memoryview(bytes(CHUNK))

    def __init__(self, seed: bytes) -> None:
        self.cipher = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()

    def words(self, shape: tuple[int, ...]) -> Array:
        found = np.empty(shape, np.uint64)
        target = memoryview(found.reshape(-1)).cast("B")
        for start in range(0, len(target), CHUNK):
            part = target[start : start + CHUNK]
            self.cipher.update_into(self.zeros[: len(part)], part)
        return found

    def bits(self, like: Array) -> Array:
        """Return random words in the form of a flat array."""
        return self.words((-(-like.nbytes // 8),)).view(like.dtype)[: like.size]


def encode(array: Array) -> Array:
    return np.rint(array.astype(np.float64) * 2**FRACTION_BITS).astype(np.int64).view(np.uint64)


def halve(words: Array, width: int) -> tuple[Array, Array]:
    """Split words into their even and odd bits, each moved together into the lower ``width`` bits."""
    word = np.dtype({32: np.uint32, 16: np.uint16}.get(width, np.uint8))
    return gather(words, width).astype(word), gather(words >> words.dtype.type(1), width).astype(word)


def gather(words: Array, width: int) -> Array:
    """Move the even bits of words of 2 * ``width`` bits together."""
    kind, bits = words.dtype.type, 8 * words.itemsize

    def repeat(pattern: int, length: int) -> Any:
        return kind(sum(pattern << start for start in range(0, bits, length)))

    words = words & repeat(1, 2)
    shift = 1
    while shift < width:
        words = (words | words >> kind(shift)) & repeat((1 << 2 * shift) - 1, 4 * shift)
        shift *= 2
    return words


# --- products in Z_2^64


def times(x: Array, y: Array, shape_only: bool = False) -> Any:
    return x.shape if shape_only else x * y


def multiply_matrices(x: Array, y: Array, shape_only: bool = False) -> Any:
    if shape_only:
        return (x.shape[0], y.shape[1])
    return multiply_exactly(x, y, torch.matmul, join_rows=1, join_columns=0, few=min(x.shape[0], y.shape[1]) < 16)


def convolve(x: Array, w: Array, shape_only: bool = False) -> Any:
    if shape_only:
        return (x.shape[0], w.shape[0], x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1)
    return multiply_exactly(x, w, torch.nn.functional.conv2d, join_rows=1, join_columns=1, few=x.shape[0] < 4)


def multiply_exactly(
    x: Array, y: Array, product: Callable[..., Any], join_rows: int, join_columns: int, few: bool
) -> Array:
    """Compute a product of integers with the kernel for floats, which is faster for more than a few rows.

    x = x0 + 2^22 x1 + 2^44 x2 with signed digits of 22 bits, so that sums of 2,048 products are below 2^53 and exact.
    Products of which nothing is left modulo 2^64 are left out.
    """
    if few or x.shape[join_rows] > 1024:
        return product(to_torch(x), to_torch(y)).numpy().view(np.uint64)
    x0, x1, x2 = split(to_torch(x))
    y0, y1, y2 = split(to_torch(y))
    low = product(x0, y0)
    middle = product(torch.cat((x0, x1), join_rows), torch.cat((y1, y0), join_columns))
    high = product(torch.cat((x0, x1, x2), join_rows), torch.cat((y2, y1, y0), join_columns))
    found = high.long().bitwise_left_shift_(22).add_(middle.long()).bitwise_left_shift_(22).add_(low.long())
    return found.numpy().view(np.uint64)


def to_torch(array: Array) -> torch.Tensor:
    return torch.from_numpy(array.view(np.int64))


def split(x: torch.Tensor) -> list[torch.Tensor]:
    """Split integers into three signed digits of 22 bits."""
    digits = []
    for _ in range(2):
        digit = ((x + (1 << 21)) & ((1 << 22) - 1)) - (1 << 21)
        digits.append(digit.double())
        x = (x - digit) >> 22
    return [*digits, x.double()]


def connect() -> list[socket.socket]:
    """Return both ends of a TCP connection on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        mine = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    for sock in (mine, theirs):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return [mine, theirs]


if __name__ == "__main__":
    serve_parties(Floor, connect(), [os.urandom(16), os.urandom(16)])
