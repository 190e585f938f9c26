"""Random words and normal variates as a good engineer writes them today: xoroshiro128+, and a ziggurat."""

import math

import numpy as np
from numba import njit

ONE, TINY = np.float32(1), np.float32(2.0**-24)
FIRST, SECOND = np.uint64(24), np.uint64(37)


def _ziggurat():  # of 128 layers
    edge, area = 3.442619855899, 9.91256303526217e-3
    density = math.exp(-0.5 * edge * edge)
    keep, width, height = (np.zeros(128) for _ in range(3))
    x, previous = edge, edge
    keep[0], keep[1] = edge / (area / density) * 2.0**31, 0
    width[0], width[127] = area / density / 2.0**31, edge / 2.0**31
    height[0], height[127] = 1, density
    for i in range(126, 0, -1):
        x = math.sqrt(-2 * math.log(area / x + math.exp(-0.5 * x * x)))
        keep[i + 1], previous = x / previous * 2.0**31, x
        height[i], width[i] = math.exp(-0.5 * x * x), x / 2.0**31
    return keep.astype(np.int64), width.astype(np.float32), height.astype(np.float32)


KEEP, WIDTH, HEIGHT = _ziggurat()
EDGE = np.float32(3.442619855899)


@njit(fastmath=True, inline="always")
def seeded(lane):  # pragma: no cover  compiled
    """Returns a generator's state: splitmix64 of the lane."""
    first = (np.uint64(lane) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    second = first + np.uint64(0x9E3779B97F4A7C15)
    first = (first ^ (first >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    second = (second ^ (second >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return first ^ (first >> np.uint64(31)), second ^ (second >> np.uint64(31))


@njit(fastmath=True, inline="always")
def following(first, second):  # pragma: no cover  compiled
    """Returns the state after a word, and the word."""
    word = first + second
    second ^= first
    first = ((first << FIRST) | (first >> np.uint64(40))) ^ second ^ (second << np.uint64(16))
    second = (second << SECOND) | (second >> np.uint64(27))
    return first, second, word


@njit(fastmath=True, inline="always")
def uniform(word):  # pragma: no cover  compiled
    """Returns a uniform variate in [0, 1), from a word's upper bits."""
    return np.float32(word >> np.uint64(40)) * TINY


@njit(fastmath=True)
def normal_tail(first, second, value, layer):  # pragma: no cover  compiled
    """Draws a variate that the ziggurat's fast path refused."""
    while True:
        x = np.float32(value) * WIDTH[layer]
        if layer == 0:
            while True:
                first, second, word = following(first, second)
                x = -math.log(ONE - uniform(word)) / EDGE
                first, second, word = following(first, second)
                y = -math.log(ONE - uniform(word))
                if y + y >= x * x:
                    break
            return first, second, (EDGE + x if value > 0 else -EDGE - x)
        first, second, word = following(first, second)
        if HEIGHT[layer] + uniform(word) * (HEIGHT[layer - 1] - HEIGHT[layer]) < math.exp(-np.float32(0.5) * x * x):
            return first, second, x
        first, second, word = following(first, second)
        value, layer = np.int64(word) >> np.int64(32), np.int64(word & np.uint64(127))
        if abs(value) < KEEP[layer]:
            return first, second, np.float32(value) * WIDTH[layer]


@njit(fastmath=True, inline="always")
def normal(first, second, word):  # pragma: no cover  compiled
    """Draws a standard normal variate from a word, and more of them if it takes more."""
    value, layer = np.int64(word) >> np.int64(32), np.int64(word & np.uint64(127))
    if abs(value) < KEEP[layer]:
        return first, second, np.float32(value) * WIDTH[layer]
    return normal_tail(first, second, value, layer)
