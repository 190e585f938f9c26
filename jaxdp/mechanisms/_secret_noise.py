"""Exact noise for releases of real data, from integers and the operating system's random words, without floats.

The other mechanisms of this package are for simulations: their generator, Threefry, is not cryptographic. Here a bit is
flipped if a random 64-bit word is below an integer threshold, and discrete Laplace and Gaussian distributions are
sampled exactly, by rejection. The functions do not defend against an adversary who measures running times.
"""

import math
import secrets
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np

from jaxdp.validation import check_count, check_epsilon, check_positive, refuse_masked, refuse_private

WORDS = 2**64
LARGEST_EPSILON = 64  # the threshold is 1 from epsilon = 44.4 on
DIGITS = 60
SPARE = Fraction(1, 10**50)  # exceeds the relative error of an exponential with 60 digits


def secret_randomized_response(labels: object, epsilon: float | Fraction) -> np.ndarray:
    """Flips each bit with probability 1 / (1 + e^epsilon), rounded up, using random words of the operating system.

    Args:
        labels: [...] integers in {0, 1}, or bool.
        epsilon: budget of each bit, in (0, inf).

    Returns:
        [...] reports in {0, 1}, int32.

    Raises:
        ValueError: if labels are neither integers nor bool, or not 0 or 1; or if epsilon is not in (0, inf).

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one bit; adjacency: replace one.
        - Why: A 64-bit word below an integer threshold t flips the bit. t is 2^64 / (1 + e^epsilon) rounded
          up, so the ratio of the two probabilities, (2^64 - t) / t, is at most e^epsilon.

    Source:
        Warner (1965).

    Deviations:
        The probability of a flip is rounded up to a multiple of 2^-64.

    Examples:
        >>> reports = secret_randomized_response([0, 1, 1], 1.0)
        >>> reports.shape, set(reports.tolist()) <= {0, 1}
        ((3,), True)
    """
    refuse_masked("labels", labels)
    bits = np.asarray(labels)
    if bits.dtype.kind not in "biu":
        raise ValueError(f"labels must be integers or bool, got dtype {bits.dtype}")
    refuse_private("labels", "0 or 1", (bits != 0) & (bits != 1))
    words = np.frombuffer(secrets.token_bytes(8 * bits.size), np.uint64).reshape(bits.shape)
    is_flipped = words < np.uint64(flip_threshold(_budget(epsilon)))
    return (bits.astype(np.int32) ^ is_flipped).astype(np.int32)


def secret_discrete_laplace(size: int, epsilon: float | Fraction) -> list[int]:
    """Draws exact discrete Laplace noise, P(k) proportional to exp(-epsilon * |k|), from the system's randomness.

    Args:
        size: number of draws, >= 0.
        epsilon: the budget, in (0, inf), for releasing an integer of sensitivity 1. For an integer of sensitivity s,
            pass `Fraction(budget) / s`, which is not rounded.

    Returns:
        The draws, as Python integers.

    Raises:
        ValueError: if size or epsilon is out of range.

    Privacy:
        - Claim: an integer plus one draw is epsilon-DP in the central model, if one record changes the integer by at
          most 1.
        - Why: the sampler uses only uniform integers and exact arithmetic, so its probabilities are exactly
          proportional to exp(-epsilon * |k|).

    Source:
        Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy", Algorithms 1 and 2, arXiv
        2004.00010.

    Deviations:
        None.

    Examples:
        >>> noise = secret_discrete_laplace(2, 1.0)
        >>> len(noise), type(noise[0])
        (2, <class 'int'>)
    """
    budget = _budget(epsilon)
    return [draw_laplace(budget, secrets.randbelow) for _ in range(check_count("size", size, 0))]


def secret_discrete_gaussian(size: int, variance: float | Fraction) -> list[int]:
    """Draws exact discrete Gaussian noise, P(k) proportional to exp(-k^2 / (2 variance)), from the system's randomness.

    Args:
        size: number of independent draws, >= 0.
        variance: parameter of the distribution, in (0, inf). The variance of a draw is at most this parameter.

    Returns:
        The draws, as Python integers.

    Raises:
        ValueError: if size or variance is out of range.

    Privacy:
        - Claim: a vector of integers, each plus one draw, is (sensitivity^2 / (2 variance))-zCDP in the central model,
          where sensitivity is the vector's L2 sensitivity to one record.
        - Why: the sampler uses only uniform integers and exact arithmetic, and the divergence of shifted discrete
          Gaussians is at most the divergence of shifted normal distributions (Theorem 14 of the source).

    Source:
        Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy", Algorithm 3, arXiv
        2004.00010.

    Deviations:
        None.

    Examples:
        >>> noise = secret_discrete_gaussian(2, 100.0)
        >>> len(noise), type(noise[0])
        (2, <class 'int'>)
    """
    rounded_variance = check_positive("variance", variance)  # pyright: ignore[reportArgumentType]
    exact = Fraction(variance if isinstance(variance, int | float | Fraction) else rounded_variance)
    return [draw_gaussian(exact, secrets.randbelow) for _ in range(check_count("size", size, 0))]


def flip_threshold(epsilon: Fraction) -> int:
    """Returns the least t in [1, 2^63] with (2^64 - t) / t <= e^epsilon."""
    rounded_down = Context(prec=DIGITS, rounding=ROUND_FLOOR)
    smaller = rounded_down.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    power = Fraction(Context(prec=DIGITS).exp(min(smaller, Decimal(LARGEST_EPSILON)))) * (1 - SPARE)
    return min(WORDS // 2, math.ceil(WORDS / (1 + power)))


def draw_laplace(epsilon: Fraction, below: Callable[[int], int]) -> int:
    """Draws discrete Laplace noise with parameter epsilon > 0; below(n) draws a uniform integer in [0, n)."""
    while (noise := attempt_laplace(epsilon, below)) is None:
        pass
    return noise


def attempt_laplace(epsilon: Fraction, below: Callable[[int], int]) -> int | None:
    """Draws discrete Laplace noise as `draw_laplace` does, or returns None if the attempt is rejected."""
    remainder = below(epsilon.denominator)
    if not bernoulli_exp(remainder, epsilon.denominator, below):
        return None
    quotient = 0
    while bernoulli_exp(1, 1, below):
        quotient += 1
    size = (remainder + epsilon.denominator * quotient) // epsilon.numerator
    is_negative = below(2) == 1
    if is_negative and size == 0:  # zero has one sign
        return None
    return -size if is_negative else size


def draw_gaussian(variance: Fraction, below: Callable[[int], int]) -> int:
    """Draws discrete Gaussian noise with parameter variance > 0; below(n) draws a uniform integer in [0, n)."""
    while (noise := attempt_gaussian(variance, below)) is None:
        pass
    return noise


def attempt_gaussian(variance: Fraction, below: Callable[[int], int]) -> int | None:
    """Draws discrete Gaussian noise as `draw_gaussian` does, or returns None if the attempt is rejected."""
    scale = math.isqrt(math.floor(variance)) + 1
    noise = draw_laplace(Fraction(1, scale), below)
    exponent = (abs(noise) - variance / scale) ** 2 / (2 * variance)
    for _ in range(math.floor(exponent)):
        if not bernoulli_exp(1, 1, below):
            return None
    fraction = exponent - math.floor(exponent)
    return noise if bernoulli_exp(fraction.numerator, fraction.denominator, below) else None


def bernoulli_exp(numerator: int, denominator: int, below: Callable[[int], int]) -> bool:
    """Draws True with probability exp(-numerator / denominator), for a fraction in [0, 1]."""
    trial = 1
    while below(denominator * trial) < numerator:
        trial += 1
    return trial % 2 == 1


def _budget(epsilon: float | Fraction) -> Fraction:
    value = epsilon if isinstance(epsilon, Fraction) else check_epsilon(epsilon)
    if not 0 < value < math.inf:
        raise ValueError(f"epsilon must be in (0, inf) for a release, got {epsilon}")
    return Fraction(value)
