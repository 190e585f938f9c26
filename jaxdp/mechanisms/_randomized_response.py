"""Randomized response: a label or a bounded scalar leaves the user's device only after randomization."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from jaxdp.mechanisms._arrays import Scalar, float_array, label_array, positive_scalar
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.validation import check_count


def randomized_response(key: jax.Array, labels: ArrayLike, epsilon: Scalar, *, num_labels: int = 2) -> jax.Array:
    """Keeps each label with probability e^epsilon / (e^epsilon + K - 1), else reports one of the K - 1 others.

    Args:
        key: a PRNG key.
        labels: [...] integers in [0, num_labels). One outside is reported as it is, or moved to some other integer: it
            is not private.
        epsilon: [] float > 0, may be traced; infinity keeps every label. A traced epsilon <= 0 keeps labels no more
            often than chance, and NaN never moves one: the labels are then released.
        num_labels: K >= 2, static.

    Returns:
        [...] reports in [0, num_labels), of the same shape and dtype.

    Raises:
        ValueError: if num_labels is not a whole number >= 2, labels are not integers of a dtype that holds
            num_labels - 1, or epsilon is not a scalar, or is a Python or NumPy number that is not > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; adjacency: replace one.
        - Why: A report's probabilities given any two labels differ by a factor of at most e^epsilon. Each label is
          randomized independently.

    Source:
        Warner (1965); Kairouz, Bonawitz & Ramage (2016), for K labels.

    Deviations:
        The probability of moving is a multiple of 2^-32, rounded up, and at least 2^-32 at each finite epsilon: above
        epsilon = 20 the report becomes more private than claimed.

    Examples:
        >>> labels = jnp.array([0, 1, 2, 1], jnp.int32)
        >>> print(randomized_response(jax.random.key(0), labels, float("inf"), num_labels=3))  # no privacy, no noise
        [0 1 2 1]
    """
    num_labels = check_count("num_labels", num_labels, 2)
    labels = label_array("labels", labels, num_labels)
    epsilon = positive_scalar("epsilon", epsilon)
    epsilon = epsilon.astype(_wide(epsilon.dtype))
    entry = Entry("randomized_response", labels, "changed", key, None, epsilon, each=True, low=0, high=num_labels - 1)
    labels = record(entry)
    if num_labels == 2:
        bias = jnp.tanh(epsilon / 2)
        threshold = jnp.where(bias < 0.5, _nearly_even(bias), _rare(jax.nn.sigmoid(-epsilon), epsilon))
        return jnp.where(jax.random.bits(key, labels.shape, jnp.uint32) < threshold, 1 - labels, labels)
    key_move, key_offset = jax.random.split(key)
    log_odds = epsilon - math.log(num_labels - 1)
    keep = jax.nn.sigmoid(log_odds)
    threshold = jnp.where(keep < 0.5, _frequent(keep, epsilon), _rare(jax.nn.sigmoid(-log_odds), epsilon))
    moves = jax.random.bits(key_move, labels.shape, jnp.uint32) < threshold
    offset = jax.random.randint(key_offset, labels.shape, 1, num_labels, jnp.int32)
    # (labels + offset) mod K, without leaving the range of a narrow dtype
    forward, back = offset.astype(labels.dtype), (num_labels - offset).astype(labels.dtype)
    return jnp.where(moves, jnp.where(labels >= back, labels - back, labels + forward), labels)


def debias_labels(reports: ArrayLike, epsilon: Scalar) -> jax.Array:
    """Unbiased estimates of binary labels from their randomized responses: (report - (1 - p)) / (2p - 1).

    Args:
        reports: [...] integers in {0, 1}, from `randomized_response`.
        epsilon: [] float > 0, may be traced: the value that the reports were made with. p = sigmoid(epsilon); infinity
            gives the reports themselves. A wrong value gives biased estimates, zero infinite or NaN ones.

    Returns:
        [...] estimates in epsilon's dtype: 1/2 ± 1 / (2 tanh(epsilon / 2)), of mean label.

    Raises:
        ValueError: if reports are not integers, or epsilon is not a scalar, or is a Python or NumPy number that is not
            > 0.

    Privacy:
        - post-processing, costs nothing.

    Source:
        Warner (1965).

    Deviations:
        Written (report - 1/2) / tanh(epsilon / 2) + 1/2, the same number without cancellation.

    Examples:
        >>> print(debias_labels(jnp.array([0, 1], jnp.int32), float("inf")))
        [0. 1.]
    """
    epsilon = positive_scalar("epsilon", epsilon)
    reports = label_array("reports", reports, 2).astype(epsilon.dtype)
    return (reports - 0.5) / jnp.tanh(epsilon / 2) + 0.5


def debias_one_hot(reports: ArrayLike, epsilon: Scalar, *, num_labels: int) -> jax.Array:
    """Unbiased estimates of the labels' one-hot vectors from K-ary randomized responses.

    With p = e^epsilon / (e^epsilon + K - 1) and q = (1 - p) / (K - 1), entry j is (1[report = j] - q) / (p - q).
    Averaged over users this estimates the labels' frequencies.

    Args:
        reports: [...] integers in [0, num_labels), from `randomized_response`. One outside counts as no label.
        epsilon: [] float > 0, may be traced: the value that the reports were made with. A wrong value gives biased
            estimates, zero infinite or NaN ones.
        num_labels: K >= 2, static.

    Returns:
        [..., num_labels] estimates in epsilon's dtype, which sum to 1 and have the one-hot vector as mean.

    Raises:
        ValueError: if num_labels is not a whole number >= 2, reports are not integers of a dtype that holds
            num_labels - 1, or epsilon is not a scalar, or is a Python or NumPy number that is not > 0.

    Privacy:
        - post-processing, costs nothing.

    Source:
        Kairouz, Bonawitz & Ramage (2016).

    Deviations:
        Numerator and denominator are multiplied by 1 + (K - 1) e^-epsilon, for small epsilon and infinity.

    Examples:
        >>> print(debias_one_hot(jnp.array([2, 0], jnp.int32), float("inf"), num_labels=3))
        [[0. 0. 1.]
         [1. 0. 0.]]
    """
    num_labels = check_count("num_labels", num_labels, 2)
    reports = label_array("reports", reports, num_labels)
    epsilon = positive_scalar("epsilon", epsilon)
    one_hot = jax.nn.one_hot(reports, num_labels, dtype=epsilon.dtype)
    decay = jnp.exp(-epsilon)
    return (one_hot * (1 + (num_labels - 1) * decay) - decay) / -jnp.expm1(-epsilon)


def randomize_scalar(key: jax.Array, values: ArrayLike, epsilon: Scalar, *, bound: Scalar) -> jax.Array:
    """One random bit per bounded scalar: +1 with probability 1/2 + values / (2 bound) * tanh(epsilon / 2), else -1.

    The default report of a bounded reward or loss in the local model: `debias_scalar` makes of it an unbiased
    estimate of constant magnitude, so that every analysis of bounded losses applies.

    Args:
        key: a PRNG key.
        values: [...] float in [-bound, bound]. Nothing is clipped here: outside, the rarer bit has probability below
            1 / (1 + e^epsilon), to 0 in the end, so that the report is not private, and its estimate is biased. If
            values can leave the interval, clip them on the user's side, jnp.clip(values, -bound, bound), and account
            for the bias of that. NaN is reported as -1.
        epsilon: [] float > 0, may be traced. *At infinity the report is still a random bit*, of mean values / bound; it
            is not noiseless. Traced, zero gives a fair coin, a negative value the opposite bits, and NaN the sign of
            the value, which is not private.
        bound: [] float > 0, may be traced.

    Returns:
        [...] int32 in {-1, +1}.

    Raises:
        ValueError: if values are not floats, or epsilon or bound is not a scalar, or is a Python or NumPy number that
            is not > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one value; adjacency: replace one.
        - Why: Either bit has probability between 1 / (1 + e^epsilon) and e^epsilon / (1 + e^epsilon) whatever the
          value. Each value is randomized independently.

    Source:
        Duchi, Jordan & Wainwright (2018), in one dimension.

    Deviations:
        None in distribution; the probability of the rarer bit is computed without cancellation and, as in
        `randomized_response`, rounded up to a multiple of 2^-32.
    """
    values = float_array("values", values)
    wide = _wide(values.dtype)
    epsilon = positive_scalar("epsilon", epsilon, wide)
    bound = positive_scalar("bound", bound, wide)
    values = record(
        Entry("randomize_scalar", values, "max", key, 2 * bound, epsilon, each=True, low=-bound, high=bound)
    )
    turns = sign_turns(key, jnp.abs(values).astype(wide) / bound, epsilon)
    return jnp.where((values > 0) ^ turns, jnp.int32(1), jnp.int32(-1))


def sign_turns(key: jax.Array, magnitude: jax.Array, epsilon: Scalar) -> jax.Array:
    """The coin that turns a sign: true with probability 1/2 - magnitude / 2 tanh(epsilon / 2), rounded up.

    Args:
        key: a PRNG key.
        magnitude: [...] float in [0, 1]: how sure the sign is. Above 1 the coin is not private.
        epsilon: [] float > 0, may be traced.

    Returns:
        [...] bool. Either outcome has a probability between 1 / (1 + e^epsilon) and e^epsilon / (1 + e^epsilon).
    """
    wide = _wide(magnitude.dtype)
    magnitude, epsilon = magnitude.astype(wide), positive_scalar("epsilon", epsilon, wide)
    rare = (1 - magnitude) / 2 + magnitude * jax.nn.sigmoid(-epsilon)
    bias = magnitude * jnp.tanh(epsilon / 2)
    threshold = jnp.where(bias < 0.5, _nearly_even(bias), _rare(rare, epsilon))
    return jax.random.bits(key, magnitude.shape, jnp.uint32) < threshold


def debias_scalar(reports: ArrayLike, epsilon: Scalar, *, bound: Scalar) -> jax.Array:
    """Unbiased estimates of bounded scalars from their random bits: bound * (e^epsilon + 1) / (e^epsilon - 1) * report.

    Args:
        reports: [...] integers in {-1, +1}, from `randomize_scalar`.
        epsilon: [] float > 0, may be traced: the value that the reports were made with. Infinity gives bound * report.
            A wrong value gives biased estimates, zero infinite ones.
        bound: [] float > 0, may be traced: the value that the reports were made with.

    Returns:
        [...] estimates ± bound / tanh(epsilon / 2) in epsilon's dtype, of mean value.

    Raises:
        ValueError: if reports are not integers, or epsilon or bound is not a scalar, or is a Python or NumPy number
            that is not > 0.

    Privacy:
        - post-processing, costs nothing.

    Source:
        Duchi, Jordan & Wainwright (2018), in one dimension.

    Deviations:
        None.
    """
    epsilon = positive_scalar("epsilon", epsilon)
    reports = label_array("reports", reports, 2).astype(epsilon.dtype)
    return positive_scalar("bound", bound, epsilon.dtype) / jnp.tanh(epsilon / 2) * reports


# A probability becomes a whole number of 2^-32, with which 32 random bits are compared: a small bias then survives,
# which the 23 bits of a float32 uniform would round away. Each is rounded towards more privacy, by more than the
# error of float32.
GRID = 2.0**32


def _wide(dtype: DTypeLike) -> DTypeLike:
    """At least float32: 2^32 is infinite in float16."""
    return dtype if dtype == jnp.float64 else jnp.float32


def _spare(epsilon: jax.Array) -> jax.Array:
    """Bounds the relative error of exp(-epsilon), that of epsilon's own rounding included."""
    return (8 + jnp.minimum(epsilon, 128)) * 2.0**-22


def _rare(probability: jax.Array, epsilon: jax.Array) -> jax.Array:
    """A probability <= 1/2, rounded up. That of a finite epsilon is not 0, though float32 may make it so."""
    words = jnp.ceil(probability * (1 + _spare(epsilon)) * GRID).astype(jnp.uint32)
    return jnp.maximum(words, (epsilon < jnp.inf).astype(jnp.uint32))


def chance_for_counts(chance: jax.Array, epsilon: jax.Array) -> jax.Array:
    """Returns a probability of moving for `binomial`, which rounds small ones to its grid: there it is rounded up.

    Args:
        chance: [...] float32 or float64 in [0, 1], of a label that moves at epsilon.
        epsilon: [] float > 0, of the same dtype; infinity leaves the chance as it is.

    Returns:
        [...] of the same dtype. Chances that have 18 binary digits on the grid and more are left as they are.
    """
    grid = 2.0 ** -jnp.finfo(chance.dtype).bits
    is_rare = (chance < grid * 2**18) & (epsilon < jnp.inf)
    return jnp.where(is_rare, chance * (1 + _spare(epsilon)) + grid, chance)


def _nearly_even(bias: jax.Array) -> jax.Array:
    """The probability (1 - bias) / 2 for a small bias >= 0, rounded up."""
    return jnp.uint32(2**31) - jnp.floor(bias * ((1 - 2.0**-21) * GRID / 2)).astype(jnp.uint32)


def _frequent(complement: jax.Array, epsilon: jax.Array) -> jax.Array:
    """The probability 1 - complement, for a complement < 1/2, rounded up."""
    return jnp.uint32(0) - jnp.floor(complement * (1 - _spare(epsilon)) * GRID).astype(jnp.uint32)  # modulo 2^32
