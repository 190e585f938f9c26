"""Randomized response: the user's device randomizes a label or a bounded scalar before sending it."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from jaxdp.mechanisms._arrays import Scalar, float_array, label_array, positive_scalar
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.validation import check_count


def randomized_response(key: jax.Array, labels: ArrayLike, epsilon: Scalar, *, num_labels: int = 2) -> jax.Array:
    r"""Keeps each label with probability e^epsilon / (e^epsilon + K - 1), otherwise reports one of the K - 1 others.

    Args:
        key: a PRNG key.
        labels: [...] integers in [0, num_labels). The report of a label outside this range is not private: it is the
            label itself or another integer.
        epsilon: [] float > 0, may be traced; infinity keeps every label. A traced epsilon <= 0 keeps labels no more
            often than chance. A traced NaN keeps every label, so the labels are released.
        num_labels: K >= 2, static.

    Returns:
        [...] reports in [0, num_labels), of the same shape and dtype.

    Raises:
        ValueError: if num_labels is not an integer >= 2, labels are not integers of a dtype that can represent
            num_labels - 1, or epsilon is not a scalar, or is a Python or NumPy number that is not > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; adjacency: replace one.
        - Why: The probabilities of a report given any two labels differ by a factor of at most e^epsilon. Each label is
          randomized independently.

    Source:
        Warner (1965); Kairouz, Bonawitz & Ramage (2016), for K labels.

    Deviations:
        A small margin is added to the probability of reporting another label. The sum is rounded up to a multiple of
        2^-32; at each finite epsilon the result is at least 2^-32. So the report is a little more private than claimed.
        The difference is large above epsilon = 20 + log(K - 1), where multiples of 2^-32 are coarse. For K > 2, if
        rounding would make the probability of keeping a label less than 1 / K, the report is a random label; this needs
        epsilon below about 3e-6 + K / 2^32.

    Math:
        A label $y$ among $K$ is reported as $r$ with

        $$
        P(r = y) = \frac{e^{\varepsilon}}{e^{\varepsilon} + K - 1}, \quad P(r = j) = \frac{1}{e^{\varepsilon} + K - 1}
        $$

        for each other label $j$.

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
    words = jax.random.bits(key_move, labels.shape, jnp.uint32)
    # If rounding made the true label rarer than other labels, P(other) / P(true) would exceed e^epsilon at a tiny
    # epsilon.
    is_lost = (keep < 0.5) & (jnp.uint32(0) - threshold < jnp.uint32(-(-(2**32) // num_labels)))
    any_label = (words % jnp.uint32(num_labels)).astype(labels.dtype)
    offset = jax.random.randint(key_offset, labels.shape, 1, num_labels, jnp.int32)
    # (labels + offset) mod K, without leaving the range of a narrow dtype
    forward, back = offset.astype(labels.dtype), (num_labels - offset).astype(labels.dtype)
    moved_labels = jnp.where(words < threshold, jnp.where(labels >= back, labels - back, labels + forward), labels)
    return jnp.where(is_lost, any_label, moved_labels)


def debias_labels(reports: ArrayLike, epsilon: Scalar) -> jax.Array:
    """Returns unbiased estimates of binary labels from randomized responses: (report - (1 - p)) / (2p - 1).

    Args:
        reports: [...] integers in {0, 1}, from `randomized_response`.
        epsilon: [] float > 0, may be traced: the value used for the reports. p = sigmoid(epsilon); infinity gives the
            reports themselves. A wrong value gives biased estimates, and a traced zero gives infinities of both signs.

    Returns:
        [...] unbiased estimates, 1/2 ± 1 / (2 * tanh(epsilon / 2)), in epsilon's dtype. The mean of an estimate is the
        label, up to the rounding in Deviations of `randomized_response`.

    Raises:
        ValueError: if reports are not integers, or epsilon is not a scalar, or is a Python or NumPy number that is not
            > 0.

    Privacy:
        - Post-processing, which costs no privacy.

    Source:
        Warner (1965).

    Deviations:
        Computed as (report - 1/2) / tanh(epsilon / 2) + 1/2, the same number without cancellation.

    Examples:
        >>> print(debias_labels(jnp.array([0, 1], jnp.int32), float("inf")))
        [0. 1.]
    """
    epsilon = positive_scalar("epsilon", epsilon)
    reports = label_array("reports", reports, 2).astype(epsilon.dtype)
    return (reports - 0.5) / jnp.tanh(epsilon / 2) + 0.5


def debias_one_hot(reports: ArrayLike, epsilon: Scalar, *, num_labels: int) -> jax.Array:
    """Returns unbiased estimates of labels' one-hot vectors from K-ary randomized responses.

    With p = e^epsilon / (e^epsilon + K - 1) and q = (1 - p) / (K - 1), entry j is (1[report = j] - q) / (p - q).
    The average over users estimates the frequencies of labels.

    Args:
        reports: [...] integers in [0, num_labels), from `randomized_response`. A report outside this range counts as no
            label.
        epsilon: [] float > 0, may be traced: the value used for the reports. A wrong value gives biased estimates, and
            a traced zero gives infinities of both signs.
        num_labels: K >= 2, static.

    Returns:
        [..., num_labels] estimates in epsilon's dtype. Each estimate sums to 1, and its mean is the one-hot vector, up
        to the rounding in Deviations of `randomized_response`.

    Raises:
        ValueError: if num_labels is not an integer >= 2, reports are not integers of a dtype that can represent
            num_labels - 1, or epsilon is not a scalar, or is a Python or NumPy number that is not > 0.

    Privacy:
        - Post-processing, which costs no privacy.

    Source:
        Kairouz, Bonawitz & Ramage (2016).

    Deviations:
        Numerator and denominator are multiplied by 1 + (K - 1) e^-epsilon, to be accurate at small epsilon and valid at
        infinity.

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
    r"""Draws one bit per scalar: +1 with probability 1/2 + tanh(epsilon / 2) * values / (2 * bound), otherwise -1.

    This is the default report of a bounded reward or loss in the local model. `debias_scalar` turns the bit into an
    unbiased estimate of constant magnitude, so that every analysis of bounded losses applies.

    Args:
        key: a PRNG key.
        values: [...] float in [-bound, bound]. Any other value counts as the nearer end of the interval: its report is
            private, and its estimate is biased by the distance to that end. NaN counts as -bound.
        epsilon: [] float > 0, may be traced. *At infinity the report is still a random bit* with mean values / bound. A
            traced zero gives a fair coin, a traced negative number gives meaningless bits, and a traced NaN gives the
            signs of `values`, which are not private.
        bound: [] float > 0, may be traced.

    Returns:
        [...] int32 in {-1, +1}.

    Raises:
        ValueError: if values are not floats, or epsilon or bound is not a scalar, or is a Python or NumPy number that
            is not > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one value; adjacency: replace one.
        - Why: For any value, each bit has a probability between 1 / (1 + e^epsilon) and e^epsilon / (1 + e^epsilon).
          Each value is randomized independently.

    Source:
        Duchi, Jordan & Wainwright (2018), in one dimension.

    Deviations:
        The probability of the rarer bit is computed without cancellation and, as in `randomized_response`, raised by a
        small margin and rounded up to a multiple of 2^-32.

    Math:
        For a value $v \in [-B, B]$

        $$
        P(Y = 1) = \frac{1}{2} + \frac{v}{2 B} \cdot \frac{e^{\varepsilon} - 1}{e^{\varepsilon} + 1}, \quad
        P(Y = -1) = 1 - P(Y = 1)
        $$

        so that $c B Y$ has the mean $v$, with

        $$
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$
    """
    values = float_array("values", values)
    wide = _wide(values.dtype)
    epsilon = positive_scalar("epsilon", epsilon, wide)
    bound = positive_scalar("bound", bound, wide)
    values = jnp.clip(values.astype(wide), -bound, bound)
    values = record(
        Entry("randomize_scalar", values, "max", key, 2 * bound, epsilon, each=True, low=-bound, high=bound)
    )
    magnitude = jnp.where(jnp.isnan(values), 1, jnp.abs(values) / bound)
    turns = sign_turns(key, magnitude, epsilon)
    return jnp.where((values > 0) ^ turns, jnp.int32(1), jnp.int32(-1))


def sign_turns(key: jax.Array, magnitude: jax.Array, epsilon: Scalar) -> jax.Array:
    """Draws whether to flip a sign: True with probability 1/2 - (magnitude / 2) * tanh(epsilon / 2), rounded up.

    Args:
        key: a PRNG key.
        magnitude: [...] float >= 0, such as |value| / bound; at 0 the draw is fair. More than 1 counts as 1.
        epsilon: [] float > 0, may be traced.

    Returns:
        [...] bool. Either outcome has a probability between 1 / (1 + e^epsilon) and e^epsilon / (1 + e^epsilon).
    """
    wide = _wide(magnitude.dtype)
    magnitude, epsilon = jnp.minimum(magnitude.astype(wide), 1), positive_scalar("epsilon", epsilon, wide)
    rare = (1 - magnitude) / 2 + magnitude * jax.nn.sigmoid(-epsilon)
    bias = magnitude * jnp.tanh(epsilon / 2)
    threshold = jnp.where(bias < 0.5, _nearly_even(bias), _rare(rare, epsilon))
    return jax.random.bits(key, magnitude.shape, jnp.uint32) < threshold


def debias_scalar(reports: ArrayLike, epsilon: Scalar, *, bound: Scalar) -> jax.Array:
    """Returns unbiased estimates of bounded scalars from random bits: report * bound / tanh(epsilon / 2).

    Args:
        reports: [...] integers in {-1, +1}, from `randomize_scalar`.
        epsilon: [] float > 0, may be traced: the value used for the reports. Infinity gives bound * report. A wrong
            value gives biased estimates, and a traced zero gives infinities of either sign.
        bound: [] float > 0, may be traced: the value used for the reports.

    Returns:
        [...] estimates ± bound / tanh(epsilon / 2) in epsilon's dtype. The mean of an estimate is the value, up to
        the rounding in Deviations of `randomized_response`.

    Raises:
        ValueError: if reports are not integers, or epsilon or bound is not a scalar, or is a Python or NumPy number
            that is not > 0.

    Privacy:
        - Post-processing, which costs no privacy.

    Source:
        Duchi, Jordan & Wainwright (2018), in one dimension.

    Deviations:
        None.
    """
    epsilon = positive_scalar("epsilon", epsilon)
    reports = label_array("reports", reports, 2).astype(epsilon.dtype)
    return positive_scalar("bound", bound, epsilon.dtype) / jnp.tanh(epsilon / 2) * reports


# A probability is a multiple of 2^-32 that is compared with 32 random bits. A float32 uniform has only 23 bits, which
# would round a small bias away. Probabilities are rounded towards more privacy, by more than the error of float32.
GRID = 2.0**32


def _wide(dtype: DTypeLike) -> DTypeLike:
    """Returns float64 for float64, and float32 for all other dtypes, because 2^32 is infinite in float16."""
    return dtype if dtype == jnp.float64 else jnp.float32


def _spare(epsilon: jax.Array) -> jax.Array:
    """Returns a bound on the relative error of exp(-epsilon), including the rounding of epsilon."""
    return (8 + jnp.minimum(epsilon, 128)) * 2.0**-22


def _rare(probability: jax.Array, epsilon: jax.Array) -> jax.Array:
    """Returns a probability <= 1/2 in multiples of 2^-32 (uint32), rounded up with a margin; > 0 at finite epsilon."""
    words = jnp.ceil(probability * (1 + _spare(epsilon)) * GRID).astype(jnp.uint32)
    return jnp.maximum(words, (epsilon < jnp.inf).astype(jnp.uint32))


@in_64_bits
def odds_for_counts(epsilon: jax.Array, num_labels: int) -> jax.Array:
    """Returns P(a given other label) / P(the true label), rounded up, as odds for `multinomial`.

    Args:
        epsilon: [] float32 or float64 > 0; infinity gives 0.
        num_labels: K >= 2.

    Returns:
        [] of epsilon's dtype, so far above e^-epsilon that probabilities computed from K odds satisfy the claim
        despite rounding.
    """
    return _up_for_counts(jnp.exp(-_least(epsilon)), epsilon, 1.0, num_labels + 4)


@in_64_bits
def chance_for_counts(epsilon: jax.Array) -> jax.Array:
    """Returns the probability that a binary label is flipped, rounded up in the dtype of epsilon, for `binomial`."""
    return _up_for_counts(jax.nn.sigmoid(-_least(epsilon)), epsilon, 0.5, 0)


def _least(epsilon: jax.Array) -> jax.Array:
    """Returns a float64 lower bound on the numbers that round to this epsilon."""
    return epsilon.astype(jnp.float64) * (1 - float(jnp.finfo(epsilon.dtype).eps))


def _up_for_counts(chance: jax.Array, epsilon: jax.Array, largest: float, spare: int) -> jax.Array:
    """Rounds a probability, or a ratio of probabilities, up to a number of epsilon's dtype, at most `largest`.

    Before rounding, the number is raised by a margin for the error of exp, and by 4 * `spare` machine epsilons.
    At a finite epsilon, a number below 2^(18 - bits) is also raised by `_spare` and by 2^-bits, the resolution of the
    random words of `binomial`; bits is the width of the dtype.
    """
    info = jnp.finfo(epsilon.dtype)
    least_chance = chance * (1 + (8 + jnp.minimum(epsilon, 128).astype(jnp.float64)) * 2.0**-52)
    least_chance = jnp.minimum(least_chance * (1 + 4 * spare * float(info.eps)), largest)
    nearest = least_chance.astype(epsilon.dtype)
    is_less = nearest.astype(jnp.float64) < least_chance
    up = jnp.where(is_less, jnp.nextafter(nearest, jnp.asarray(1, epsilon.dtype)), nearest)
    is_rare = (up < 2.0 ** (18 - info.bits)) & (epsilon < jnp.inf)
    return jnp.where(is_rare, up * (1 + _spare(epsilon)) + 2.0**-info.bits, up)


def _nearly_even(bias: jax.Array) -> jax.Array:
    """Returns (1 - bias) / 2 as a multiple of 2^-32 (uint32), rounded up with a margin, for a small bias >= 0."""
    return jnp.uint32(2**31) - jnp.floor(bias * ((1 - 2.0**-21) * GRID / 2)).astype(jnp.uint32)


def _frequent(complement: jax.Array, epsilon: jax.Array) -> jax.Array:
    """Returns 1 - complement as a multiple of 2^-32 (uint32), rounded up with a margin, for a complement < 1/2."""
    return jnp.uint32(0) - jnp.floor(complement * (1 - _spare(epsilon)) * GRID).astype(jnp.uint32)  # modulo 2^32
